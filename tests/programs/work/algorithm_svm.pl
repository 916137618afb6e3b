# Trains a support vector machine by Perl's Algorithm::SVM on made-up vectors of three classes; prints what it predicts of them, and saves the
# model in the folder that is given.
use strict;
use warnings;
use Algorithm::SVM;
use Algorithm::SVM::DataSet;

my @set;
for my $i (0 .. 119) {
    my $label = $i % 3;
    my @data = map { sin($i * $_ * 1.7) + $label * ($_ % 2) } 1 .. 4;
    push @set, Algorithm::SVM::DataSet->new(Label => $label, Data => \@data);
}
my $svm = Algorithm::SVM->new(Type => 'C-SVC', Kernel => 'radial', Gamma => 0.3, C => 10);
$svm->train(@set);
print "classes ", join(" ", map { $svm->predict($_) } @set), "\n";
$svm->save("$ARGV[0]/model");
