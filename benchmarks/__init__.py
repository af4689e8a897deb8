"""What Neuron costs, measured; the figures in docs/ come from here."""
