#!/usr/bin/env python3
"""Cut the sample out of two native dumps: all layers of a map (activations) and the weights of two layers of a dump.

  python3 sample_data/make_sample.py MAP.h5 DUMP.h5 sample_data/smollm2.h5

MAP holds attn_in, mlp_down and residual of all 30 layers, DUMP the weights of layers 2 and 28. The first 15 tokens of each
of the three requests are kept, so that the file stays below 12 MB. Needs h5py and numpy.
"""
import sys

import h5py
import numpy as np

SITES = ("attn_in", "mlp_down", "residual")
WEIGHTS = ("q_proj", "k_proj", "v_proj", "down_proj")
LAYERS = (2, 28)
TOKENS = 15


def copy_attributes(source, target):
    for key, value in source.attrs.items():
        target.attrs[key] = value


def packed(group, name, values):
    return group.create_dataset(name, data=values, chunks=values.shape if values.ndim < 2 else (min(64, len(values)), values.shape[1]),
                                compression="gzip", compression_opts=9, shuffle=True)


def main(map_file, dump_file, out_file):
    with h5py.File(map_file) as source, h5py.File(dump_file) as weights, h5py.File(out_file, "w", track_order=False) as out:
        copy_attributes(source, out)
        copy_attributes(source["model"], out.create_group("model"))
        kept = np.flatnonzero(source["tokens/position"][...] < TOKENS)
        tokens = out.create_group("tokens")
        copy_attributes(source["tokens"], tokens)
        for name in source["tokens"]:
            values = source["tokens"][name][...][kept]
            tokens.create_dataset(name, data=values, dtype=source["tokens"][name].dtype)
        edges = out.create_group("edges")
        for name in source["edges"]:
            if name.rsplit(".", 1)[-1] in SITES:
                copy_attributes(source["edges"][name], packed(edges, name, source["edges"][name][...][kept]))
        out.create_group("biases")
        group = out.create_group("weights")
        for layer in LAYERS:
            for role in WEIGHTS:
                name = f"layers.{layer}.{role}"
                copy_attributes(weights["weights"][name], packed(group, name, weights["weights"][name][...]))
        norms = out.create_group("norms")
        for name in source["norms"]:
            if name.endswith("input_layernorm"):
                copy_attributes(source["norms"][name], norms.create_dataset(name, data=source["norms"][name][...]))


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
