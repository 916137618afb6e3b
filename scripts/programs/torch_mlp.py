"""PyTorch on CPU tensors: a small network learns Fashion-MNIST for an epoch"""

import torch
from inputs import images, scaled

torch.manual_seed(11)
x, y = (torch.from_numpy(part) for part in images(scaled(60000, 500), "float32"))
model = torch.nn.Sequential(torch.nn.Linear(784, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for batch, labels in zip(x.split(256), y.split(256)):
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(batch), labels)
    loss.backward()
    optimizer.step()
print(f"{torch.nn.functional.cross_entropy(model(x), y):.4f}")
