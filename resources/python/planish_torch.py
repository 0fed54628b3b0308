"""Planish for PyTorch: `apply_plan(model, "plan.yaml")` makes a Hugging Face model compute exactly what a plan promises.

Folds are computed in float64 and rounded once to the model's dtype; what stays online runs in front of the linears; fake quantizers
round activations and weights as the plan's specs say, so that any evaluation harness scores the plan. `quantize=False` leaves the
quantizers out: the logits are then those of the original, which is the equivalence check. `dump(model, texts, "out.h5")` exports
activations and weights (dump.py). Needs torch and PyYAML; written by `planish-cli python`.
"""
import math

import numpy as np
import torch

from planish_numbers import Numpy, forward_all, parse_spec, quantize as quantize_matrix, range_of, round_float, STEP_TYPES, _shares
from planish_plan import Family, Plan, PlanError, basis_hash, fold_columns, fold_rows, named_rows, row_map

__all__ = ["apply_plan", "dump", "PlanError"]


class Torch:
    """The array functions of planish_numbers over tensors."""
    rint, where, floor, abs, sqrt = torch.round, torch.where, torch.floor, torch.abs, torch.sqrt

    @staticmethod
    def array(x, like=None):
        return torch.as_tensor(np.array(x, dtype=np.float64) if not torch.is_tensor(x) else x, dtype=torch.float64, device=like.device)

    @staticmethod
    def flags(x, like=None):
        return torch.as_tensor(x, dtype=torch.bool, device=like.device)

    @staticmethod
    def index(x, like=None):
        return x.to(torch.int64) if torch.is_tensor(x) else torch.as_tensor(np.array(x, dtype=np.int64), device=like.device)

    @staticmethod
    def zeros(shape, like=None):
        return torch.zeros(tuple(shape), dtype=torch.float64, device=like.device)

    @staticmethod
    def sort(x):
        return torch.sort(x, dim=-1).values

    @staticmethod
    def smallest(x):
        return torch.amin(x, dim=-1, keepdim=True)

    @staticmethod
    def largest(x):
        return torch.amax(x, dim=-1, keepdim=True)

    @staticmethod
    def total(x):
        return torch.sum(x, dim=-1, keepdim=True)

    @staticmethod
    def clip(x, low, high):
        low = low if torch.is_tensor(low) else torch.full_like(x, low)
        high = high if torch.is_tensor(high) else torch.full_like(x, high)
        return torch.minimum(torch.maximum(x, low), high)

    @staticmethod
    def exponent(x):
        mantissa, exponent = torch.frexp(x)
        return torch.where(mantissa == 0, torch.full_like(mantissa, -2000), exponent.to(torch.float64) - 1)

    @staticmethod
    def power_of_two(e):
        return torch.pow(torch.full_like(e, 2.0), e)

    @staticmethod
    def take(x, i):
        return torch.gather(x, -1, i)

    @staticmethod
    def concat(parts):
        return torch.cat(parts, dim=-1)


WORDS = {torch.float16: "F16", torch.bfloat16: "BF16", torch.float32: "F32", torch.float64: "F64"}


def _bytes(tensor, dtype):
    tensor = tensor.detach().to("cpu").contiguous()
    cast = tensor.to(dtype)
    if not torch.equal(cast.to(torch.float64), tensor.to(torch.float64)):
        return None
    return (cast.view(torch.int16) if dtype == torch.bfloat16 else cast).numpy().tobytes()


class _Weights:
    """Parameters of a model by dump name, as float64 copies that are folded and then written back once."""

    def __init__(self, model, family):
        self.model, self.family = model, family
        # By every name, also where two modules share one parameter.
        self.parameters = {(module + "." if module else "") + name: parameter for module, owner in model.named_modules(remove_duplicate=False)
                           for name, parameter in owner.named_parameters(recurse=False)}
        self.copies, self.created = {}, {}

    def place(self, name, subject):
        place = self.family.find(name)
        if place is None:
            raise PlanError(f"{subject}: the model has no {name}; expected the model the plan was made from")
        return place

    def matrix(self, place):
        """Logical view [outputs, channels] (or [n]) of the float64 copy; changes reach the copy."""
        if place.parameter not in self.copies:
            self.copies[place.parameter] = self.parameters[place.parameter].detach().to("cpu", torch.float64).numpy().copy()
        view = self.copies[place.parameter]
        view = view.T if place.transposed and view.ndim == 2 else view
        return view if place.rows is None else view[place.rows[0]:place.rows[1]]

    def linear(self, text, subject):
        """(weight, bias or None, name) of "name[a:b]"."""
        name, rows = named_rows(text)
        weight, bias = self.matrix(self.place(name, subject)), None
        found = self.family.find(name + ".bias")
        if found is not None:
            bias = self.matrix(found)
        elif name in self.created:
            bias = self.created[name]
        return (weight, bias, name) if rows is None else (weight[rows[0]:rows[1]], None if bias is None else bias[rows[0]:rows[1]], name)

    def new_bias(self, name, size):
        self.created[name] = np.zeros(size)
        return self.created[name]

    def write(self):
        """Rounds every touched copy once to its dtype."""
        with torch.no_grad():
            for name, values in self.copies.items():
                self._store(name, self.parameters[name], values)
            for name, values in self.created.items():
                module = _module(self.model, self.place(name, name).parameter)
                weight = module.weight
                bias = torch.as_tensor(values).to(weight.dtype).to(weight.device)
                if module.bias is None:
                    module.bias = torch.nn.Parameter(bias, requires_grad=False)
                else:
                    module.bias.copy_(bias)

    @staticmethod
    def _store(name, parameter, values):
        rounded = torch.as_tensor(np.ascontiguousarray(values)).to(parameter.dtype)
        if not bool(torch.isfinite(rounded).all()):
            raise PlanError(f"{name}: a folded value is beyond {str(parameter.dtype)[6:]}; expected values the dtype can hold (overflow)")
        parameter.copy_(rounded.to(parameter.device))


def _module(model, parameter):
    return model.get_submodule(parameter.rsplit(".", 1)[0])


def _is_tied(model):
    head, table = model.get_output_embeddings(), model.get_input_embeddings()
    return head is not None and table is not None and head.weight is table.weight


def _untie(model):
    """A head that shares the embedding table gets a copy of its own."""
    head = model.get_output_embeddings()
    head.weight = torch.nn.Parameter(head.weight.detach().clone(), requires_grad=False)
    model.config.tie_word_embeddings = False


def _check_basis(plan, weights):
    names = set()
    for a in plan.assignments:
        if not a.changes:
            continue
        shift, operators = a.prefix
        touched = [(text, a.shift is not None) for text in a.consumers]
        if shift is not None or operators:
            if a.kind in ("rmsnorm", "layernorm"):
                touched.append((a.producer, True))
            else:
                touched += [(text, True) for text in _producers(a)]
        for text, with_bias in touched:
            name = named_rows(text)[0]
            names.add(weights.place(name, a.edge).parameter)
            bias = weights.family.find(name + ".bias") if with_bias else None
            if bias is not None:
                names.add(bias.parameter)
    if not plan.basis or not names:
        return
    sets = [names]
    if _is_tied(weights.model):  # a checkpoint may hold the table alone
        head, table = weights.family.find("head"), weights.family.find("embed")
        sets.append({table.parameter if head and table and name == head.parameter else name for name in names})
    kinds = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
    for matrix in kinds:
        for vector in kinds:
            def fetch(name):
                tensor = weights.parameters[name]
                dtype = vector if tensor.dim() == 1 else matrix
                raw = _bytes(tensor, dtype)
                if raw is None:
                    raise OverflowError
                return WORDS[dtype], list(tensor.shape), raw
            try:
                if any(basis_hash(each, fetch) == plan.basis for each in sets):
                    return
            except OverflowError:
                continue
    raise PlanError(f"{plan.path}: the model's tensors are not those the plan was made from (basis_mismatch); expected basis {plan.basis}")


def _producers(a):
    """Linears whose rows the prefix changes: the producer, and what follows a permutation (gate rows)."""
    producers = [a.producer]
    if any(operator.kind == "permute" for operator in a.prefix[1]):
        consumers = {named_rows(text)[0] for text in a.consumers}
        for name in a.entry.get("fused_into") or []:
            if named_rows(name)[0] not in consumers | {named_rows(a.producer)[0]}:
                producers.append(name)
    return producers


def _fold(plan, weights):
    for a in plan.assignments:
        if not a.changes:
            continue
        first, a.branch = 0, []
        for index, text in enumerate(a.consumers):
            weight, bias, name = weights.linear(text, a.edge)
            part = np.array(a.replaced.get(text, weight), dtype=np.float64)
            if a.shift is not None:
                bias = weights.new_bias(name, weight.shape[0]) if bias is None else bias
                bias += part @ a.shift
            folded = fold_columns(part, a.operators)
            if a.low_rank:
                left, right = a.low_rank["pairs"][0 if a.low_rank["stacked"] else index]
                a.branch.append([left[first:first + len(folded)] if a.low_rank["stacked"] else left, right])
                folded = folded - a.branch[-1][0] @ right
            first += len(folded)
            weight[...] = folded
        shift, operators = a.prefix
        if shift is None and not operators:
            continue
        if a.kind in ("rmsnorm", "layernorm"):
            _fold_norm(a, weights, shift, operators)
            continue
        for number, text in enumerate(_producers(a)):
            weight, bias, name = weights.linear(text, a.edge)
            mixing = operators if number == 0 else [each for each in operators if each.kind == "permute"]
            width = operators[0].width(len(weight)) if operators else len(shift)
            rows = row_map(width, len(weight), plan.model, a.edge)
            new, new_bias = fold_rows(weight, bias, shift if number == 0 else None, mixing, rows, a.edge)
            weight[...] = new
            if bias is not None:
                bias[...] = new_bias
            _follow(plan, weights, weight, lambda matrix: fold_rows(matrix, None, None, mixing, rows, a.edge)[0])


def _follow(plan, weights, folded, fold):
    """Low-rank branches and fitted bounds of the edge that reads into these rows are folded with them."""
    for b in plan.assignments:
        for index, text in enumerate(b.consumers):
            view = weights.linear(text, b.edge)[0]
            if not np.shares_memory(view, folded):
                continue
            if view.shape != folded.shape or view.ctypes.data != folded.ctypes.data:
                if b.low_rank or b.clips:
                    raise PlanError(f"{b.edge}: another edge folds a part of {text} only; expected whole rows for its branch or clip")
                continue
            if b.branch:
                b.branch[index][0] = fold(b.branch[index][0])
            for clip in b.clips:
                values = np.asarray(clip["values"], dtype=np.float64)
                mine = clip["target"] == "weight" and clip["bound"] == "absolute" and clip.get("consumer", b.consumers[0]) == text
                if mine and values.shape[-1] % len(view) == 0:
                    ends = [fold(end.reshape(len(view), -1)).reshape(-1) for end in np.atleast_2d(values)]
                    clip["values"] = np.stack(ends) if values.ndim == 2 else ends[0]


def _fold_norm(a, weights, shift, operators):
    if not all(operator.diagonal for operator in operators):
        raise PlanError(f"{a.edge}: a norm gain cannot hold a rotation (norm_gain_between); expected a scale")
    gain = weights.matrix(weights.place(a.producer, a.edge))
    divisor = np.ones(len(gain))
    for operator in operators:
        divisor = divisor * operator.tensor.get("tensor", 1.0)
    offset = 1.0 if a.offset else 0.0
    gain[...] = (offset + gain) / divisor - offset
    found = weights.family.find(a.producer + ".bias")
    if found is not None:
        bias = weights.matrix(found)
        bias[...] = (bias - (0 if shift is None else shift)) / divisor
    elif shift is not None:
        raise PlanError(f"{a.edge}: the norm has no bias to hold -c (norm_without_bias); expected a norm with a bias")


def _bounds(clips, spec, matrix, xp, ranges=None):
    """(spec, ranges, clamp) after the fitted clips of one quantizer."""
    clamp = None
    for clip in clips:
        values = np.asarray(clip["values"], dtype=np.float64)
        low, high = (values[0], values[1]) if values.ndim == 2 else (-values, values)
        if clip.get("clamps_values"):
            clamp = high
        if clip["bound"] == "absolute":
            if not clip.get("clamps_values"):
                ranges = (low, high)
        elif ranges is None and values.size == 1 or values.ndim == 2 and values.shape[1] == 1 and ranges is None and values[0] == values[1]:
            spec = _with_clip(spec, ("fixed", float(high[0])))
        else:
            if ranges is None:
                v, real, _ = _shares(matrix, spec, xp)
                counts = xp.flags(np.ones(tuple(v.shape), dtype=bool), v) if real is None else real
                ranges = range_of(v, counts, spec, xp)
            low_factor, high_factor = (values[0], values[1]) if values.ndim == 2 else (values, values)
            ranges = tuple(xp.array(end, matrix).reshape(-1) * xp.array(factor, matrix) for end, factor in zip(ranges, (low_factor, high_factor)))
    return spec, ranges, clamp


def _with_clip(spec, clip):
    copy = parse_spec("none")
    copy.__dict__.update(spec.__dict__, clip=clip)
    return copy


def _rounded(x, precision):
    return x if precision in ("stored", None) else round_float(x, STEP_TYPES["f16" if precision == "fp16" else "bf16"], Torch)


class _Edge:
    """What runs on one edge: online operators and the fake quantizer in front of every linear that reads it."""

    def __init__(self, a, quantize, ranges, compute):
        self.a, self.quantize, self.ranges, self.compute = a, quantize, ranges, compute
        rule = a.exceptions or {}
        self.dynamic = quantize and rule.get("mode") == "dynamic"
        self.per_request = rule.get("unit", "request") != "all"
        self.columns = None
        self.branch = {}    # module -> right and left factor
        self.original = {}  # module -> W' before quantization, where a dynamic set needs it
        self.kept = {}

    def transform(self, x):
        shift, operators = self.a.online
        flat = forward_all(operators, x.reshape(-1, x.shape[-1]).to(self.compute).to(torch.float64), Torch, shift)
        return flat

    def quantized(self, flat, columns):
        """xhat of rows; columns: flags of the exact ones."""
        a = self.a
        if not self.quantize or a.act.format == "none":
            return flat
        spec, ranges, clamp = _bounds([c for c in a.clips if c["target"] == "activation"], a.act, flat, Torch, self.ranges)
        exact = None if columns is None else columns.expand(flat.shape)
        ignore = None
        if columns is not None and a.exceptions["step_ignores"] == "elements":
            ignore = flat.abs() >= float(a.exceptions.get("threshold", 6.0))
        tensor_max = None
        if a.act.format == "nvfp4" and a.act.static:
            tensor_max, ranges = float(np.max(np.abs(np.asarray(ranges)))), None
        out = quantize_matrix(flat, spec, Torch, ranges=ranges, clamp=clamp, exact=exact, ignore=ignore, tensor_max=tensor_max)
        return out if exact is None else torch.where(exact, _rounded(flat, a.exceptions.get("x_precision")), out)

    def exact_columns(self, flat):
        rule = self.a.exceptions
        if not self.quantize or not rule:
            return None
        if rule["mode"] == "static":
            flags = torch.zeros(flat.shape[-1], dtype=torch.bool, device=flat.device)
            flags[torch.as_tensor(rule["columns"], dtype=torch.int64, device=flat.device)] = True
            return flags
        if not rule["threshold"] > 0:
            return torch.zeros(flat.shape[-1], dtype=torch.bool, device=flat.device)
        size = flat.abs()
        return (size > rule["threshold"] if rule.get("comparator") == "gt" else size >= rule["threshold"]).any(dim=0)

    def before(self, module, inputs):
        x = inputs[0]
        flat = self.transform(x)
        if not self.dynamic:
            out = self.quantized(flat, self.exact_columns(flat))
            if self.branch:
                self.kept[module] = flat
            return (out.reshape(x.shape).to(x.dtype), *inputs[1:])
        self.kept[module] = flat
        return None

    def after(self, module, inputs, output):
        if self.dynamic:
            return self._dynamic(module, inputs[0], output)
        flat = self.kept.pop(module, None)
        if flat is None or module not in self.branch:
            return None
        right, left = self.branch[module]
        return output + (flat @ right.to(flat.device).T @ left.to(flat.device).T).reshape(output.shape).to(output.dtype)

    def _dynamic(self, module, x, output):
        flat = self.kept.pop(module)
        requests = x.shape[0] if self.per_request and x.dim() > 2 else 1
        parts = []
        for part in flat.reshape(requests, -1, flat.shape[-1]):
            columns = self.exact_columns(part)
            weight = self.weight(module, columns)
            parts.append(self.quantized(part, columns) @ weight.T)
        y = torch.cat(parts).reshape(output.shape)
        bias = getattr(module, "bias", None)
        return (y if bias is None else y + bias.to(torch.float64)).to(output.dtype)

    def weight(self, module, columns):
        """Quantized W' of a module with these columns exact; the last set is remembered."""
        key = columns.cpu().numpy().tobytes()
        parts, last, value = self.original[module]
        if last != key:
            value = torch.cat([self.quantize_weight(part, index, columns, maximum) for part, index, maximum in parts])
            self.original[module] = (parts, key, value)
        return value

    def quantize_weight(self, part, index, columns=None, maximum=None):
        """What of W' of a consumer [N, K] ships: clips, spec, exact columns."""
        a = self.a
        if a.weight.format == "none":
            return part
        consumer = a.consumers[index]
        clips = [c for c in a.clips if c["target"] == "weight" and c.get("consumer", a.consumers[0]) == consumer]
        spec, ranges, clamp = _bounds(clips, a.weight, part, Torch)
        exact = None
        if columns is not None and a.exceptions.get("w_precision") != "quantized":
            exact = columns.to(part.device).expand(part.shape)
        out = quantize_matrix(part, spec, Torch, ranges=ranges, clamp=clamp, exact=exact, tensor_max=maximum)
        return out if exact is None else torch.where(exact, _rounded(part, a.exceptions.get("w_precision")), out)


class Applied:
    """What apply_plan did; `remove()` takes the hooks off again (weights stay folded)."""

    def __init__(self):
        self.edges, self.handles = [], []

    def remove(self):
        for handle in self.handles:
            handle.remove()
        self.handles = []


def _install(a, weights, quantize, ranges, compute, applied):
    edge = _Edge(a, quantize, ranges, compute)
    modules, maximum = {}, None
    parts = []
    for index, text in enumerate(a.consumers):
        name, rows = named_rows(text)
        place = weights.place(name, a.edge)
        parameter, module = weights.parameters[place.parameter], _module(weights.model, place.parameter)
        view = parameter.T if place.transposed else parameter
        view = view if place.rows is None else view[place.rows[0]:place.rows[1]]
        view = view if rows is None else view[rows[0]:rows[1]]
        parts.append((module, view, index))
        modules.setdefault(module, []).append((view, index))
    if a.weight.format == "nvfp4":
        maximum = max(float(view.abs().max()) for _, view, _ in parts)
    with torch.no_grad():
        for module, view, index in parts:
            exact = view.detach().to(torch.float64)
            if edge.dynamic:
                held = edge.original.setdefault(module, ([], None, None))
                held[0].append((exact.clone(), index, maximum))
            elif quantize:
                columns = edge.exact_columns(exact[:1]) if a.exceptions else None
                view.copy_(edge.quantize_weight(exact, index, columns, maximum).to(view.dtype))
        if a.low_rank:
            for module, view, index in parts:
                left, right = a.branch[index]
                if module in edge.branch:
                    raise PlanError(f"{a.edge}: a low-rank branch on a fused linear has no place; expected separate linears")
                edge.branch[module] = (torch.as_tensor(np.array(right, dtype=np.float64)), torch.as_tensor(np.array(left, dtype=np.float64)))
    shift, operators = a.online
    if shift is not None or operators or edge.branch or edge.dynamic or (quantize and a.act.format != "none"):
        for module in modules:
            applied.handles += [module.register_forward_pre_hook(edge.before), module.register_forward_hook(edge.after)]
    applied.edges.append({"edge": a.edge, "candidate": a.candidate, "folded": list(a.entry.get("fused_into") or []) if a.changes else [],
                          "online": [operator.kind for operator in operators] + (["shift"] if shift is not None else []),
                          "activation": a.act.text if quantize else "none", "weight": a.weight.text if quantize else "none"})


def _unplaced(plan):
    """What this bridge cannot put into a model, as sentences."""
    sentences = [f"stream {stream.get('stream')}: a rotated residual stream; use the checkpoint planish-cli apply writes" for stream in plan.streams]
    for a in plan.assignments:
        if a.kv:
            sentences.append(f"{a.edge}: a quantizer of keys and values")
        if a.output:
            sentences.append(f"{a.edge}: operators on the outputs")
        sentences += [f"{a.edge}: a factor on {reader.get('reader')}, which is no linear" for reader in a.other_readers]
    return sentences


def _static_range(plan, a, dump_file):
    """Range of X' on the plan's calibration rows, for `static` specs; the plan itself holds no ranges."""
    if dump_file is None:
        raise PlanError(f"{a.edge}: {a.act.text} takes its range from calibration rows; expected dump=FILE.h5, the dump of the plan")
    import h5py
    calibration = plan.tree["calibration"]
    if calibration.get("unit") != "request":
        raise PlanError(f"{a.edge}: the plan's calibration is by block; expected whole requests for a static range")
    with h5py.File(dump_file, "r") as file:
        request = file["tokens/request"][:]
        keep = np.isin(request, [int(each) for each in calibration["requests"]])
        if "mask" in file["tokens"]:
            keep &= file["tokens/mask"][:] != 0
        if "position" in file["tokens"]:
            keep &= ~np.isin(file["tokens/position"][:], calibration.get("skipped_positions") or [])
        rows = file["rows/" + a.edge][:] if f"rows/{a.edge}" in file else np.arange(len(request))
        x = file["edges/" + a.edge]
        values = x[:][keep[rows]]
        if x.attrs.get("stored_dtype") == "bfloat16" and values.dtype == np.uint16:
            values = (values.astype(np.uint32) << 16).view(np.float32)
    x = forward_all(a.operators, values.astype(np.float64), Numpy, a.shift)
    v = x.reshape(1, -1) if a.act.sharing == "tensor" or a.act.format == "nvfp4" else x.T
    low, high = range_of(v, np.ones(v.shape, dtype=bool), a.act if a.act.format != "nvfp4" else parse_spec("int8"), Numpy)
    return low.reshape(-1), high.reshape(-1)


def apply_plan(model, plan, quantize=True, dump=None, families=None, check=True, compute=torch.float64):
    """Installs folds, online operators and fake quantizers of a plan on a Hugging Face model, in place.

    plan: path of the manifest (its side file lies beside it). quantize=False: the transform alone. dump: the plan's dump, needed
    only for static activation ranges. check=False skips the basis hash (a model whose dtype cannot give the stored bytes).
    compute: dtype in which X enters operators and quantizers. Returns what was placed; raises PlanError, before anything
    changes, for what cannot be.
    """
    plan = plan if isinstance(plan, Plan) else Plan(plan)
    sentences = _unplaced(plan)
    if sentences:
        raise PlanError(f"{plan.path}: cannot be placed in a PyTorch model: " + "; ".join(sentences))
    names = set(model.state_dict())
    key = plan.family or Family.match(getattr(model.config, "architectures", None), names, families)
    family = Family(key, names, plan.model, families)
    weights = _Weights(model, family)
    for a in plan.assignments:
        for text in a.consumers:
            weights.place(named_rows(text)[0], a.edge)
    ranges = {a.edge: _static_range(plan, a, dump) for a in plan.assignments if quantize and a.act.static}
    if check:
        _check_basis(plan, weights)
    head = family.find("head")
    touched = {weights.place(named_rows(text)[0], a.edge).parameter for a in plan.assignments if a.changes or quantize for text in a.consumers}
    if _is_tied(model) and head is not None and head.parameter in touched:
        _untie(model)
        weights = _Weights(model, Family(key, set(model.state_dict()), plan.model, families))
    _fold(plan, weights)
    weights.write()
    applied = Applied()
    for a in plan.assignments:
        _install(a, weights, quantize, ranges.get(a.edge), compute, applied)
    return applied


def dump(model, texts, out, **options):
    """Exports activations and weights of a Hugging Face model into a native dump, resumable; see dump.py."""
    from dump import dump as export
    return export(model, texts, out, **options)
