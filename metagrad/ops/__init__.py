"""The rules: one class an operation, arrays in, arrays out. They know nothing of Tensors."""
