"""What is decoded: one file per kind of model, the protocols in `base`, the names in `catalog`."""
