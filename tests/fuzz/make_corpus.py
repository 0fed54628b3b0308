#!/usr/bin/env python3
"""Writes the small good files that the fuzz targets damage: python3 make_corpus.py. Needs numpy and h5py; the files are committed."""
import json, struct
from pathlib import Path

import h5py
import numpy as np

HERE = Path(__file__).parent / "corpus"
RNG = np.random.default_rng(1)


def numbers(*shape):
    return RNG.standard_normal(shape).astype(np.float16)


def native(path, **options):
    with h5py.File(path, "w", **options) as f:
        f.attrs["format"] = "planish-dump/1"
        model = f.create_group("model")
        for key, value in dict(hidden_size=16, num_layers=1, num_heads=2, num_kv_heads=2, head_dim=8, ffn_size=32,
                               norm_kind="rmsnorm", norm_offset=0, activation="silu").items():
            model.attrs[key] = value
        f["tokens/id"] = np.arange(12, dtype=np.int32)
        f["tokens/text"] = np.array(["a", "bc", "ü"] * 4, dtype=h5py.string_dtype())
        f["tokens/request"] = np.repeat([0, 1], 6).astype(np.int32)
        f["tokens/position"] = np.tile(np.arange(6, dtype=np.int32), 2)
        plain = f.create_dataset("edges/layers.0.attn_in", data=numbers(12, 16))
        packed = f.create_dataset("edges/layers.0.mlp_in", data=numbers(12, 16), chunks=(5, 16), compression="gzip", shuffle=True,
                                  fletcher32=True)
        bare = f.create_dataset("edges/layers.0.mlp_down", data=numbers(12, 32), chunks=(4, 7))
        for dataset, site in ((plain, "attn_in"), (packed, "mlp_in"), (bare, "mlp_down")):
            dataset.attrs.update(layer=0, site=site, basis="original", axis="channel last")
            dataset.attrs["consumers"] = np.array([f"layers.0.{site}.w"], dtype=h5py.string_dtype())
        f["rows/layers.0.mlp_down"] = np.arange(12, dtype=np.int32)
        f["weights/layers.0.attn_in.w"] = numbers(8, 16)
        f["weights/layers.0.mlp_in.w"] = numbers(8, 16)
        f.create_dataset("weights/layers.0.mlp_down.w", data=numbers(8, 32), chunks=(3, 32), compression="lzf")
        f["links/soft"] = h5py.SoftLink("/edges/layers.0.attn_in")


def matlab(path):
    with h5py.File(path, "w", userblock_size=512) as f:
        x = f.create_dataset("acts", data=RNG.standard_normal((6, 10)))
        x.attrs["MATLAB_class"] = np.bytes_("double")
        mask = f.create_dataset("mask", data=np.ones((1, 10), np.uint8))
        mask.attrs["MATLAB_class"] = np.bytes_("logical")
        cell = f.create_dataset("#refs#/a", data=RNG.standard_normal((3, 2)))
        refs = f.create_dataset("cells", (1, 1), dtype=h5py.ref_dtype)
        refs[0, 0] = cell.ref
        refs.attrs["MATLAB_class"] = np.bytes_("cell")
    with open(path, "r+b") as out:
        out.write(b"MATLAB 7.3 MAT-file".ljust(116) + b"\0" * 8 + b"\x00\x02IM")


def safetensors(path, tensors):
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, value in tensors.items():
        raw = value.tobytes()
        kind = {"float16": "F16", "float32": "F32", "int64": "I64"}[str(value.dtype)]
        header[name] = {"dtype": kind, "shape": list(value.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def main():
    for folder in ("hdf5", "matlab", "safetensors", "config", "scores"):
        (HERE / folder).mkdir(parents=True, exist_ok=True)
    native(HERE / "hdf5/native_old.h5")
    native(HERE / "hdf5/native_new.h5", libver="latest")
    matlab(HERE / "matlab/small.mat")
    safetensors(HERE / "safetensors/small.safetensors", {"model.layers.0.q.weight": numbers(4, 8), "norm": numbers(8).astype(np.float32),
                                                        "ids": np.arange(3), "scalar": np.float32(1).reshape(())})
    (HERE / "config/config.json").write_text(json.dumps(
        {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
         "num_key_value_heads": 2, "intermediate_size": 128, "rms_norm_eps": 1e-5, "hidden_act": "silu", "vocab_size": 100,
         "rope_theta": 10000.0, "rope_scaling": {"factor": 8.0, "type": "linear"}, "tie_word_embeddings": True}, indent=1))
    (HERE / "scores/scores.csv").write_text("edge,name,value\nlayers.0.attn_in,ppl,1.5\nlayers.0.mlp_in,ppl,2e-3\n")


main()
