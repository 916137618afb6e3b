"""The numbers of an example's figures, which it does not print: an array of NumPy's format for each kind of number of each of
their axes, and a text with their titles, labels and legends. They go to $GALLERY_OUT."""

import os

MOST = 200_000  # numbers of an array: of more, every n-th
OUT = os.environ["GALLERY_OUT"]
count = 0


def numbers(values):
    """All of these arrays as one of floats."""
    import numpy as np

    flat = []
    for value in values:
        value = np.ma.filled(np.ma.asarray(value), 0) if np.ma.isMaskedArray(value) else np.asarray(value)
        if value.dtype.kind in "mM":
            value = value.astype("i8")
        if value.dtype.kind in "biuf":
            flat.append(value.astype(float).ravel())
    whole = np.concatenate(flat) if flat else np.empty(0)
    return whole[::whole.size // MOST + 1]


def drawn(axes):
    """(kind, arrays) of what is in the axes."""
    yield "limits", [axes.get_xlim(), axes.get_ylim()]
    yield "line_x", [line.get_xdata(orig=False) for line in axes.lines]
    yield "line_y", [line.get_ydata(orig=False) for line in axes.lines]
    yield "line_3d", [side for line in axes.lines for side in getattr(line, "_verts3d", ())]
    yield "offsets", [part.get_offsets() for part in axes.collections]
    yield "offsets_3d", [side for part in axes.collections for side in getattr(part, "_offsets3d", ())]
    yield "values", [part.get_array() for part in axes.collections if part.get_array() is not None]
    yield "paths", [path.vertices for part in axes.collections for path in part.get_paths()]
    yield "images", [image.get_array() for image in axes.images]
    yield "boxes", [(p.get_x(), p.get_y(), p.get_width(), p.get_height()) for p in axes.patches if hasattr(p, "get_width") and hasattr(p, "get_x")]
    yield "patches", [p.get_path().vertices for p in axes.patches if not hasattr(p, "get_width")]


def texts(axes):
    legend = axes.get_legend()
    words = [axes.get_title(), axes.get_xlabel(), axes.get_ylabel(), *(text.get_text() for text in axes.texts)]
    return words + ([text.get_text() for text in legend.get_texts()] if legend else [])


def write(figure):
    global count
    import numpy as np

    count += 1
    with open(f"{OUT}/figures.txt", "a", encoding="utf-8") as file:
        for place, axes in enumerate(figure.axes):
            print(*texts(axes), sep="\n", file=file)
            for kind, values in drawn(axes):
                array = numbers(values)
                if array.size:
                    np.save(f"{OUT}/{count:03}_{place:02}_{kind}.npy", array)


def watch():
    """Figures that the example closes are written before that."""
    import matplotlib.pyplot as pyplot
    from matplotlib._pylab_helpers import Gcf

    close = Gcf.destroy

    def write_first(manager):
        known = Gcf.figs.get(manager) if not hasattr(manager, "canvas") else manager
        if known is not None:
            write(known.canvas.figure)
        close(manager)

    Gcf.destroy = staticmethod(write_first)
    close_all = Gcf.destroy_all

    def write_all_first():
        write_all()
        close_all()

    Gcf.destroy_all = staticmethod(write_all_first)
    return pyplot


def write_all():
    from matplotlib._pylab_helpers import Gcf

    for manager in list(Gcf.figs.values()):
        write(manager.canvas.figure)
    Gcf.figs.clear()
