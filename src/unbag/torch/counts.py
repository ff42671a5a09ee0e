"""What is counted of a batch of bags, beside their likelihoods."""

# Places in `counts`: bags that no labelling explains, that needed the slower of two kernels, of
# which labels were relaxed, and that no kernel could hold.
IMPOSSIBLE, SLOW, RELAXED, INTRACTABLE = range(4)
