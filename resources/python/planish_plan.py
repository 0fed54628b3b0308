"""A Planish plan read back: manifest, side file, the names of a model family, and the basis hash that binds both. NumPy and PyYAML."""
import ast
import hashlib
import json
import os
import re
import struct

import numpy as np
import yaml

from planish_numbers import Operator, forward_all, parse_spec, weights_all

DTYPES = {"F64": np.float64, "F32": np.float32, "F16": np.float16, "I64": np.int64, "I32": np.int32, "I8": np.int8, "U8": np.uint8}


class PlanError(Exception):
    """SUBJECT: what is wrong; what was expected."""


def read_safetensors(path):
    """name -> array of a safetensors file; bfloat16 comes as float32."""
    with open(path, "rb") as file:
        size = struct.unpack("<Q", file.read(8))[0]
        header = json.loads(file.read(size))
        data = file.read()
    out = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        raw = data[begin:end]
        if entry["dtype"] == "BF16":
            values = (np.frombuffer(raw, np.uint16).astype(np.uint32) << 16).view(np.float32)
        else:
            values = np.frombuffer(raw, DTYPES[entry["dtype"]])
        out[name] = values.reshape(entry["shape"])
    return out


class _StrictLoader(yaml.SafeLoader):
    """Duplicate keys and aliases are errors."""

    def compose_node(self, parent, index):
        if self.check_event(yaml.AliasEvent):
            raise PlanError("the plan: uses a YAML alias; expected a plain document")
        return super().compose_node(parent, index)

    def construct_mapping(self, node, deep=False):
        keys = [key.value for key, _ in node.value]
        for key in keys:
            if keys.count(key) > 1:
                raise PlanError(f"the plan: key {key} stands twice in line {node.start_mark.line + 1}; expected it once")
        return super().construct_mapping(node, deep)


# YAML 1.1 reads 1e-17 as text and 0x10 as a number; the program writes and reads YAML 1.2 numbers.
_StrictLoader.yaml_implicit_resolvers = {key: [each for each in value if each[0] != "tag:yaml.org,2002:float"]
                                         for key, value in yaml.SafeLoader.yaml_implicit_resolvers.items()}
_StrictLoader.add_implicit_resolver("tag:yaml.org,2002:float", re.compile(r"^[-+]?(\d+\.\d*|\.\d+|\d+)([eE][-+]?\d+)?$|^[-+]?\.(inf|nan)$"), list("-+0123456789."))


class Assignment:
    """One edge of a plan: transform, what of it is fused, quantizers and the slots beside them."""

    def __init__(self, entry, tensor):
        self.edge = entry["edge"]
        self.entry = entry
        self.candidate = entry.get("x-candidate") or entry.get("method") or "+".join(member["method"] for member in entry.get("chain", []))
        producer = entry.get("producer") or {}
        self.producer, self.kind, self.offset = producer.get("name") or "", producer.get("kind") or "", bool(producer.get("offset"))
        self.consumers = list(entry.get("consumers") or [])
        operators = list(entry.get("operators") or [])
        self.shift = tensor(operators[0]["tensor"]) if operators and operators[0]["kind"] == "shift" else None
        self.operators = [Operator(each, tensor) for each in operators if each["kind"] != "shift"]
        online = [each["operator"] for each in entry.get("online") or []]
        self.shift_online = "shift" in online
        self.fused = len(self.operators) - sum(each != "shift" for each in online)
        quantizer = entry.get("quantizer") or {}
        self.act, self.weight = parse_spec(quantizer.get("activation", "none")), parse_spec(quantizer.get("weight", "none"), "weight")
        self.kv = quantizer.get("kv")
        self.exceptions = (entry.get("exceptions") or [None])[0]
        self.clips = [dict(clip, values=tensor(clip["tensor"])) for clip in entry.get("clips") or []]
        low_rank = entry.get("low_rank")
        self.low_rank = low_rank and {"stacked": low_rank.get("branch") == "stacked",
                                      "pairs": [(tensor(pair["left"]), tensor(pair["right"])) for pair in low_rank["tensors"]]}
        self.branch = []  # left and right factor of every consumer, once the plan is folded
        self.replaced = {each["consumer"]: tensor(each["tensor"]) for each in entry.get("replaced") or []}
        self.output = [Operator(each, tensor) for each in entry.get("output_operators") or []]
        self.other_readers = entry.get("other_readers") or []

    @property
    def changes(self):
        """Does any tensor of the model change?"""
        return bool(self.operators or self.shift is not None or self.replaced or self.low_rank)

    @property
    def prefix(self):
        """(shift, operators) that live in the producer."""
        return (None if self.shift_online else self.shift), self.operators[:self.fused]

    @property
    def online(self):
        """(shift, operators) that run in front of the consumers."""
        return (self.shift if self.shift_online else None), self.operators[self.fused:]


class Plan:
    """A manifest with its arrays; every array is checked against its SHA-256."""

    def __init__(self, path):
        self.path = path
        with open(path, encoding="utf-8") as file:
            self.tree = yaml.load(file, Loader=_StrictLoader)
        if not isinstance(self.tree, dict) or self.tree.get("schema") != "planish-plan/1":
            raise PlanError(f"{path}: is no planish-plan/1; expected a manifest of planish-cli plan")
        self._files = {}
        self.model = self.tree["source"].get("model") or {}
        self.family = self.tree["source"].get("family") or ""
        self.basis = (self.tree.get("basis") or {}).get("in")
        self.streams = self.tree.get("streams") or []
        self.assignments = [Assignment(entry, self.tensor) for entry in self.tree["edges"]]

    def tensor(self, entry):
        name = entry["file"]
        if os.path.basename(name) != name:
            raise PlanError(f"{self.path}: side file {name} lies outside its folder; expected a file beside the plan")
        if name not in self._files:
            self._files[name] = read_safetensors(os.path.join(os.path.dirname(os.path.abspath(self.path)), name))
        array = self._files[name].get(entry["key"])
        if array is None or list(array.shape) != list(entry["shape"]):
            raise PlanError(f"{name}: {entry['key']} is missing or has another shape; expected {entry['shape']}")
        if hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest() != entry["sha256"]:
            raise PlanError(f"{name}: {entry['key']} changed; expected SHA-256 {entry['sha256']}")
        return array


class Place:
    """Where a dump name lives: a parameter, rows of it, and which way it is stored."""

    def __init__(self, parameter, rows=None, transposed=False, tied=False):
        self.parameter, self.rows, self.transposed, self.tied = parameter, rows, transposed, tied


def _number(text, values):
    """Row expressions of a family file: names with + - * only."""
    def walk(node):
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub, ast.Mult)):
            left, right = walk(node.left), walk(node.right)
            return left + right if isinstance(node.op, ast.Add) else left - right if isinstance(node.op, ast.Sub) else left * right
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            return node.value
        if isinstance(node, ast.Name) and node.id in values:
            return values[node.id]
        raise PlanError(f"{text}: no row expression; expected names of the model with + - *")
    return walk(ast.parse(str(text), mode="eval").body)


class Family:
    """Names of one model family (families/KEY.yaml), against the parameters of a model."""

    def __init__(self, key, parameters, model, folder=None):
        folder = folder or os.path.join(os.path.dirname(os.path.abspath(__file__)), "families")
        self.tree = None
        for name in sorted(os.listdir(folder)):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                tree = yaml.safe_load(file)
            if key in (tree["family"], *tree.get("also", [])):
                self.tree = tree
        if self.tree is None:
            raise PlanError(f"{key}: no family of this name in {folder}; expected a key that planish-cli knows")
        self.parameters, self.model = parameters, model
        heads = model.get("num_heads") or 1
        head = model.get("head_dim") or (model.get("hidden_size") or 0) // heads
        self.values = {"hidden": model.get("hidden_size") or 0, "ffn": model.get("ffn_size") or 0, "heads": heads, "kv_heads": model.get("num_kv_heads") or heads, "head_dim": head, "q": heads * head,
                       "kv": (model.get("num_kv_heads") or heads) * head}

    @staticmethod
    def match(architectures, parameters, folder=None):
        """Key of the family of these architectures or parameter names."""
        folder = folder or os.path.join(os.path.dirname(os.path.abspath(__file__)), "families")
        trees = [yaml.safe_load(open(os.path.join(folder, name), encoding="utf-8")) for name in sorted(os.listdir(folder))]
        for tree in trees:
            if set(tree.get("match", {}).get("architectures", [])) & set(architectures or []):
                return tree["family"]
        for tree in trees:
            for pattern in tree.get("match", {}).get("any", []):
                if any(prefix + pattern.replace("{l}", "0") in parameters for prefix in tree["prefixes"]):
                    return tree["family"]
        raise PlanError("the model: fits no family; expected one of " + ", ".join(tree["family"] for tree in trees))

    def _stored(self, pattern, layer):
        name = pattern.replace("{l}", str(layer))
        for prefix in self.tree["prefixes"]:
            if prefix + name in self.parameters:
                return prefix + name
        return None

    def find(self, name):
        """Place of a dump name ("layers.3.q_proj", "embed", a bias as "layers.3.q_proj.bias"), or None."""
        bias = name.endswith(".bias")
        name = name[:-5] if bias else name
        layer = re.match(r"layers\.(\d+)\.", name)
        pattern = "layers.{l}." + name[layer.end():] if layer else name
        for choice in self.tree["names"].get(pattern, []):
            choice = {"from": choice} if isinstance(choice, str) else choice
            if "tied" in choice:
                place = self.find(choice["tied"])
                if place:
                    place.tied = True
                return place
            stored = choice["from"]
            parameter = self._stored(stored[:-6] + "bias" if bias and stored.endswith("weight") else stored, layer.group(1) if layer else "")
            if parameter is None or (bias and not stored.endswith("weight")):
                continue
            if "block" in choice or "stride" in choice:
                raise PlanError(f"{name}: its rows are interleaved in {parameter}; expected a family with whole rows")
            rows = tuple(_number(end, self.values) for end in choice["rows"]) if "rows" in choice else None
            transposed = choice.get("layout", self.tree.get("layout")) == "in_out" and not bias
            return Place(parameter, rows, transposed)
        return None

    def edges(self):
        return self.tree["edges"]


def basis_hash(names, fetch):
    """SHA-256 over tensors by ascending name: name, dtype, rank, dimensions, bytes; `fetch` gives (dtype word, shape, raw bytes)."""
    digest = hashlib.sha256()
    for name in sorted(set(names), key=lambda each: each.encode()):
        dtype, shape, raw = fetch(name)
        for text in (name.encode(), dtype.encode()):
            digest.update(struct.pack("<Q", len(text)) + text)
        digest.update(struct.pack(f"<{1 + len(shape)}Q", len(shape), *shape) + struct.pack("<Q", len(raw)))
        digest.update(raw)
    return "sha256:" + digest.hexdigest()


def named_rows(text):
    """"name[a:b]" -> (name, (a, b)) or (name, None)."""
    found = re.fullmatch(r"(.*)\[(\d+):(\d+)\]", text)
    return (found.group(1), (int(found.group(2)), int(found.group(3)))) if found else (text, None)


def row_map(channels, rows, model, subject):
    """Producer row that each channel of an edge reads: itself, or its key-value head behind grouped attention."""
    if channels == rows:
        return np.arange(channels)
    head = model.get("head_dim") or channels // max(model.get("num_heads") or 1, 1)
    if rows == 0 or channels % rows or head <= 0 or rows % head:
        raise PlanError(f"{subject}: {rows} producer rows do not repeat into {channels} channels; expected key-value heads that divide the query heads")
    k = np.arange(channels)
    return k // head // (channels // rows) * head + k % head


def fold_rows(weight, bias, shift, operators, rows_of, subject):
    """P^T W and P^T (b - c) on producer rows [rows, inputs]; channels that share a row must agree."""
    def reduced(expanded):
        out = np.empty((weight.shape[0], expanded.shape[0]))
        out[rows_of] = expanded.T
        if not np.allclose(out[rows_of], expanded.T, rtol=1e-9, atol=1e-12):
            raise PlanError(f"{subject}: channels that share a row want different factors; expected one factor per key-value channel")
        return out
    if weight.shape[0] != len(set(rows_of.tolist())):
        raise PlanError(f"{subject}: does not read every row of its producer; expected one channel per row")
    if bias is not None:
        column = bias[rows_of][None, :] - (0 if shift is None else shift)
        bias = reduced(forward_all(operators, column))[:, 0]
    elif shift is not None and np.any(shift):
        raise PlanError(f"{subject}: the producer has no bias to hold -c; expected a bias")
    return reduced(forward_all(operators, weight[rows_of].T.copy())), bias


def fold_columns(weight, operators):
    """W P^-T in float64."""
    return weights_all(operators, weight)
