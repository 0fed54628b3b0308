"""Quantizers and operators of a Planish plan, for NumPy arrays or PyTorch tensors: one implementation, float64.

Formats, dialects, sharing and clip rules are those of `planish-cli formats`; xhat of every element equals the program's. `xp` is
`Numpy` or, from planish_torch, `Torch`: the dozen array functions used here. Nothing in this file needs torch.
"""
import math
from dataclasses import dataclass, field

import numpy as np


class Numpy:
    """Array functions over NumPy; Torch (planish_torch) has the same names."""
    rint, where, floor, sort = np.rint, np.where, np.floor, staticmethod(lambda x: np.sort(x, axis=-1))
    abs, sqrt = np.abs, np.sqrt

    @staticmethod
    def array(x, like=None):
        return np.asarray(x, dtype=np.float64)

    @staticmethod
    def flags(x, like=None):
        return np.asarray(x, dtype=bool)

    @staticmethod
    def index(x, like=None):
        return np.asarray(x, dtype=np.int64)

    @staticmethod
    def zeros(shape, like=None):
        return np.zeros(shape)

    @staticmethod
    def smallest(x):
        return np.min(x, axis=-1, keepdims=True)

    @staticmethod
    def largest(x):
        return np.max(x, axis=-1, keepdims=True)

    @staticmethod
    def total(x):
        return np.sum(x, axis=-1, keepdims=True)

    @staticmethod
    def clip(x, low, high):
        return np.minimum(np.maximum(x, low), high)

    @staticmethod
    def exponent(x):
        """floor(log2 |x|), exact; 0 gives a very small one."""
        mantissa, exponent = np.frexp(x)
        return np.where(mantissa == 0, -2000, exponent - 1).astype(np.float64)

    @staticmethod
    def power_of_two(e):
        return np.ldexp(1.0, np.asarray(e, dtype=np.int64))

    @staticmethod
    def take(x, i):
        return np.take_along_axis(x, i, axis=-1)

    @staticmethod
    def concat(parts):
        return np.concatenate(parts, axis=-1)


# format: exponent bits, mantissa bits, bias, largest finite value, its exponent
FLOATS = {"fp8_e4m3": (4, 3, 7, 448.0, 8), "fp8_e5m2": (5, 2, 15, 57344.0, 15), "fp6_e2m3": (2, 3, 1, 7.5, 2), "fp6_e3m2": (3, 2, 3, 28.0, 4),
          "fp4_e2m1": (2, 1, 1, 6.0, 2)}
BLOCKS = {"mxfp4": ("fp4_e2m1", 32), "mxfp6_e2m3": ("fp6_e2m3", 32), "mxfp6_e3m2": ("fp6_e3m2", 32), "mxfp8_e4m3": ("fp8_e4m3", 32),
          "mxfp8_e5m2": ("fp8_e5m2", 32), "mxint8": (None, 32), "nvfp4": ("fp4_e2m1", 16)}
STEP_TYPES = {"f32": (8, 23, 127, 3.4028234663852886e38, 127), "f16": (5, 10, 15, 65504.0, 15), "bf16": (8, 7, 127, 3.3895313892515355e38, 127)}
SYMMETRIC = ("narrow", "mixed", "half", "offset", "signed")
ASYMMETRIC = ("zero", "raw", "free")
TOOLS = {"bitsandbytes": "narrow", "llm_awq": "raw", "omniquant": "free"}


@dataclass
class Spec:
    """A parsed QuantSpec. `none` quantizes nothing."""
    format: str = "none"
    sharing: str = "token"
    group: int = 0
    dialect: str = "narrow"
    tool: str = ""
    clip: tuple = ("max", 1.0)
    rule: str = "floor"
    step: str = "f64"
    tail: str = "short"
    static: bool = False
    text: str = field(default="none", compare=False)

    @property
    def bits(self):
        return int(self.format[3:]) if self.format.startswith("int") else 0

    @property
    def asymmetric(self):
        return self.bits > 0 and self.dialect in ASYMMETRIC


def parse_spec(text, role="activation"):
    """`int4:group32:dialect=free` -> Spec. Raises ValueError with the word it does not know."""
    words = text.split(":")
    spec = Spec(format=words[0], sharing="token" if role == "activation" else "row", text=text)
    if spec.format == "none":
        return spec
    if not (spec.format in FLOATS or spec.format in BLOCKS or spec.format in [f"int{b}" for b in range(2, 9)]):
        raise ValueError(f"{text}: unknown format {spec.format}; expected one that `planish-cli formats` lists")
    if spec.format in BLOCKS:
        spec.sharing, spec.group = "block", BLOCKS[spec.format][1]
    for word in words[1:]:
        name, _, value = word.partition("=")
        if word in ("tensor", "token", "channel", "row"):
            spec.sharing = word
        elif word.startswith("group"):
            spec.sharing, spec.group = "group", int(word[5:])
        elif word == "asym":
            spec.dialect = spec.dialect if spec.dialect in ASYMMETRIC else "zero"
        elif word == "static":
            spec.static = True
        elif word in ("sym", "dynamic"):
            pass
        elif name == "clip":
            spec.clip = ("mse", 0.0) if value == "mse" else ("max", 1.0) if value == "max" else \
                ("percentile", float(value[1:])) if value.startswith("p") else ("fixed", float(value))
        elif name == "dialect":
            spec.tool = value if value in (*TOOLS, "compressed_tensors", "four_over_six") else ""
            if value == "compressed_tensors":
                spec.dialect = "zero" if "asym" in words else "half"
            elif value != "four_over_six":
                spec.dialect = TOOLS.get(value, value.split("-")[-1])
            if spec.dialect not in SYMMETRIC + ASYMMETRIC:
                raise ValueError(f"{text}: unknown dialect {value}")
        elif name == "scale":
            spec.step = value
        elif name == "rule":
            spec.rule = value
        elif name == "tail":
            spec.tail = value
        else:
            raise ValueError(f"{text}: unknown word {word}")
    return spec


def round_float(v, form, xp):
    """Nearest value of the grid without its upper limit, ties to even."""
    _, mantissa, bias, _, _ = form
    smallest = 1 - bias
    exponent = xp.exponent(v)
    spacing = xp.power_of_two(xp.where(exponent > smallest, exponent, smallest + 0 * exponent) - mantissa)
    return xp.rint(v / spacing) * spacing


def _stored(step, spec, xp):
    if spec.step == "f64":
        return step
    form = STEP_TYPES[spec.step]
    rounded = round_float(step, form, xp)
    return xp.where(xp.abs(rounded) > form[3], xp.where(rounded > 0, math.inf + 0 * rounded, -math.inf + 0 * rounded), rounded)


def _quantile(v, counts, p, xp):
    """Linear quantile of the counted values of each share, as NumPy computes it."""
    ordered = xp.sort(xp.where(counts, v, math.inf + 0 * v))
    n = xp.total(xp.where(counts, 1 + 0 * v, 0 * v))
    place = xp.clip((n - 1) * p, 0, math.inf)
    below = xp.floor(place)
    above = xp.clip(below + 1, 0, xp.clip(n - 1, 0, math.inf))
    fraction = place - below
    a, b = xp.take(ordered, xp.index(below)), xp.take(ordered, xp.index(above))
    a, b = xp.where(n > 0, a, 0 * a + 0.0), xp.where(n > 0, b, 0 * b + 0.0)
    return xp.where(fraction >= 0.5, b - (b - a) * (1 - fraction), a + (b - a) * fraction)


def _step(lo, hi, spec, xp):
    """Step, zero point and where the share is empty, from a final range [shares, 1]."""
    if spec.asymmetric and spec.dialect == "zero":
        lo, hi = xp.clip(lo, -math.inf, 0.0), xp.clip(hi, 0.0, math.inf)
    largest = xp.where(xp.abs(lo) > xp.abs(hi), xp.abs(lo), xp.abs(hi))
    bits, q = spec.bits, 2 ** (spec.bits - 1) - 1 if spec.bits else 0
    if spec.asymmetric:
        levels = 2 ** bits - 1
        step, empty = (hi - lo) / levels, hi == lo
        exact = xp.where(empty, 1 + 0 * step, step)
        zero = xp.rint(-lo / exact)
        zero = zero if spec.dialect == "free" else xp.clip(zero, 0.0, levels)
    else:
        if spec.format in FLOATS:
            step = largest / FLOATS[spec.format][3]
        elif spec.dialect == "half":
            step = largest / ((2 ** bits - 1) / 2.0)
        elif spec.dialect == "signed":
            step = xp.where(hi > -lo, -largest, largest) / (q + 1.0)
        else:
            step = largest / q
        empty, zero = largest == 0, 0 * step
    stored = _stored(step, spec, xp)
    multiplier = q / xp.where(largest == 0, 1 + 0 * largest, largest) if spec.tool == "bitsandbytes" and spec.bits else None
    return xp.where(empty, 1 + 0 * step, stored), zero, multiplier


def _code(v, step, zero, multiplier, spec, xp):
    """xhat of values under a step."""
    if spec.format in FLOATS:
        form = FLOATS[spec.format]
        return step * xp.clip(round_float(v / step, form, xp), -form[3], form[3])
    bits, q = spec.bits, 2 ** (spec.bits - 1) - 1
    low, high = (0.0, 2.0 ** bits - 1) if spec.asymmetric else (-q if spec.dialect in ("narrow", "offset") else -q - 1, q + 1 if spec.dialect == "offset" else q)
    if multiplier is not None:
        code = xp.rint(v * multiplier) + zero
    elif spec.tool == "compressed_tensors" and spec.asymmetric:
        code = xp.rint(v / step + zero)
    else:
        code = xp.rint(v / step) + zero
    return step * (xp.clip(code, low, high) - zero)


def range_of(v, counts, spec, xp):
    """Range of every share after the clip rule; `counts` marks the elements that decide it."""
    if spec.tool == "bitsandbytes":
        v = round_float(v, STEP_TYPES["f16"], xp)
    any_counts = xp.total(xp.where(counts, 1 + 0 * v, 0 * v)) > 0
    lo = xp.smallest(xp.where(counts, v, math.inf + 0 * v))
    hi = xp.largest(xp.where(counts, v, -math.inf + 0 * v))
    lo, hi = (xp.where(any_counts, end, xp.zeros(tuple(end.shape), end)) for end in (lo, hi))
    if spec.asymmetric and spec.dialect == "zero":
        lo, hi = xp.clip(lo, -math.inf, 0.0), xp.clip(hi, 0.0, math.inf)
    kind, value = spec.clip
    if kind == "fixed":
        return lo * value, hi * value
    if kind == "percentile" and spec.asymmetric:
        low, high = _quantile(v, counts, 1 - value, xp), _quantile(v, counts, value, xp)
        if spec.dialect == "zero":
            low, high = xp.clip(low, -math.inf, 0.0), xp.clip(high, 0.0, math.inf)
        return xp.where(high > low, low, lo), xp.where(high > low, high, hi)
    if kind == "percentile":
        bound = _quantile(xp.abs(v), counts, value, xp)
        up = hi > -lo
        return (xp.where(bound > 0, xp.where(up, 0 * bound, -bound), lo), xp.where(bound > 0, xp.where(up, bound, 0 * bound), hi))
    if kind == "mse":
        best, chosen = None, (lo, hi)
        for i in range(80):
            factor = 1 - i / 100.0
            step, zero, multiplier = _step(lo * factor, hi * factor, spec, xp)
            error = xp.total(xp.where(counts, (_code(v, step, zero, multiplier, spec, xp) - v) ** 2, 0 * v))
            if best is None:
                best, chosen = error, (lo * factor, hi * factor)
            else:
                better = error < best
                chosen = (xp.where(better, lo * factor, chosen[0]), xp.where(better, hi * factor, chosen[1]))
                best = xp.where(better, error, best)
        return chosen
    return lo, hi


def _mx(v, spec, xp):
    element = BLOCKS[spec.format][0]
    form = FLOATS[element] if element else None
    largest = xp.largest(xp.abs(v))
    exponent = xp.exponent(largest)
    mantissa = largest / xp.power_of_two(xp.clip(exponent, -1022, 1023))
    emax, limit, bits = (form[4], form[3], form[1]) if form else (0, 127 / 64, 6)
    raise_by = {"even": mantissa >= 1.75, "even_elem": mantissa >= 2 - 2.0 ** -(bits + 1), "ceil": mantissa > limit / 2.0 ** emax}.get(spec.rule)
    scale = exponent - emax + (xp.where(raise_by, 1 + 0 * exponent, 0 * exponent) if raise_by is not None else 0)
    scale = xp.power_of_two(xp.clip(scale, -127, 127)) * (4 / 3 if spec.rule == "fourthirds" else 1)
    scale = xp.where(largest == 0, 1 + 0 * scale, scale)
    if form:
        return scale * xp.clip(round_float(v / scale, form, xp), -limit, limit)
    return scale / 64 * xp.clip(xp.rint(v / (scale / 64)), -127, 127)


def _nv(v, spec, tensor_max, xp):
    form, e4m3 = FLOATS["fp4_e2m1"], FLOATS["fp8_e4m3"]
    limit = 256.0 if spec.tool == "four_over_six" else 448.0
    g = float(np.float32(tensor_max / (6 * limit))) if tensor_max > 0 else 1.0
    largest = xp.largest(xp.abs(v))

    def coded(divisor):
        raw = largest / (6 * g) * (1.5 if divisor == 4 else 1)
        scale = xp.clip(round_float(xp.clip(raw, 2.0 ** -9, 448.0), e4m3, xp), 0, 448.0) * g
        scale = xp.where(largest == 0, 1 + 0 * scale, scale)
        return scale * xp.clip(round_float(v / scale, form, xp), -6, 6)
    six = coded(6)
    if spec.tool != "four_over_six":
        return six
    four = coded(4)
    better = xp.total((four - v) ** 2) < xp.total((six - v) ** 2)
    return xp.where(better, four, six)


def _shares(x, spec, xp):
    """[shares, n], which of them are real, and the way back."""
    rows, columns = x.shape
    if spec.sharing in ("token", "row"):
        return x, None, lambda v: v
    if spec.sharing == "tensor":
        return x.reshape(1, rows * columns), None, lambda v: v.reshape(rows, columns)
    if spec.sharing == "channel":
        return x.T, None, lambda v: v.T
    missing = -columns % spec.group
    if missing and spec.tail == "reject":
        raise ValueError(f"{spec.text}: {columns} channels are no multiple of {spec.group}")
    real = None
    if missing:
        x = xp.concat([x, xp.zeros((rows, missing), x)])
        real = xp.flags(np.broadcast_to(np.arange(columns + missing) < columns, (rows, columns + missing)).reshape(-1, spec.group).copy(), x)
        real = None if spec.tail == "pad" or spec.sharing == "block" else real
    return x.reshape(-1, spec.group), real, lambda v: v.reshape(rows, columns + missing)[:, :columns]


def quantize(x, spec, xp=Numpy, ranges=None, clamp=None, exact=None, ignore=None, tensor_max=None):
    """xhat of a matrix [rows, K] (float64).

    ranges: (lo, hi) per share, final; replaces range and clip. clamp: bound per share the values are limited to first.
    exact: flags of elements kept as they are, which do not count for steps unless `ignore` says what does not count instead.
    tensor_max: largest magnitude the nvfp4 tensor scale comes from (None: of x).
    """
    if spec.format == "none":
        return x
    v, real, back = _shares(x, spec, xp)
    skipped = exact if ignore is None else ignore
    counts = xp.flags(np.ones(tuple(v.shape), dtype=bool), v) if real is None else real
    if skipped is not None:
        counts = counts & ~(_shares(xp.where(skipped, 1 + 0 * x, 0 * x), spec, xp)[0] > 0)
    coded = v
    if clamp is not None:
        bound = xp.array(clamp, v).reshape(-1, 1)
        coded = xp.clip(v, -bound, bound)
    if spec.format in BLOCKS and ignore is not None:
        raise ValueError(f"{spec.text}: block formats ignore whole columns only")
    if spec.format in BLOCKS:
        kept = xp.where(counts, coded, 0 * coded)
        if spec.format == "nvfp4":
            largest = float(xp.largest(xp.abs(kept.reshape(1, -1)))) if tensor_max is None else tensor_max
            out = _nv(coded, spec, largest, xp) if skipped is None else _nv(kept, spec, largest, xp)
        else:
            out = _mx(coded if skipped is None else kept, spec, xp)
    else:
        if ranges is None:
            lo, hi = range_of(coded, counts, spec, xp)
        else:
            lo, hi = (xp.array(end, v).reshape(-1, 1) for end in ranges)
        step, zero, multiplier = _step(lo, hi, spec, xp)
        out = _code(round_float(coded, STEP_TYPES["f16"], xp) if spec.tool == "bitsandbytes" else coded, step, zero, multiplier, spec, xp)
    out = back(out)
    return out if exact is None else xp.where(exact, x, out)


def hadamard(block):
    """Unnormalised Sylvester matrix of a power of two."""
    h = np.ones((1, 1))
    while len(h) < block:
        h = np.block([[h, h], [h, -h]])
    return h


class Operator:
    """One operator of a plan on rows [rows, K]: `forward` is X P, `weights` is W P^-T. Arrays stay NumPy until they are used."""

    def __init__(self, entry, tensor):
        self.kind = entry["kind"]
        self.tensor = {key: tensor(entry[key]) for key in ("tensor", "signs", "table", "assignment", "inverse") if isinstance(entry.get(key), dict)}
        self.entry = entry
        if self.kind == "kronecker":
            self.factors = [Operator(factor, tensor) for factor in entry["factors"]]
        elif self.kind not in ("scale", "permute", "hadamard", "block_dense", "dense", "identity"):
            raise ValueError(f"unknown operator {self.kind}")
        self._ready = {}

    def _array(self, name, like, xp, make=None):
        key = (name, xp, str(getattr(like, "device", "")))
        if key not in self._ready:
            value = make() if make else self.tensor[name]
            self._ready[key] = xp.index(value, like) if name in ("perm", "tensor") and self.kind == "permute" else xp.array(value, like)
        return self._ready[key]

    def _blocks(self, side):
        blocks = self.tensor["tensor"]
        blocks = blocks if blocks.ndim == 3 else blocks[None]
        if side == "forward":
            return blocks
        inverse = self.tensor.get("inverse")
        inverse = np.linalg.inv(blocks) if inverse is None and not self.entry.get("orthogonal") else inverse
        if inverse is None:
            return blocks
        return np.swapaxes(inverse if inverse.ndim == 3 else inverse[None], 1, 2)

    def forward(self, x, xp=Numpy):
        return self._apply(x, "forward", xp)

    def weights(self, w, xp=Numpy):
        return self._apply(w, "weights", xp)

    def _apply(self, x, side, xp):
        if self.kind == "identity":
            return x
        if self.kind == "scale":
            s = self._array("tensor", x, xp)
            return x / s if side == "forward" else x * s
        if self.kind == "permute":
            return x[:, self._array("tensor", x, xp)]
        if self.kind == "hadamard":
            return self._hadamard(x, xp)
        if self.kind == "kronecker":
            return self._kronecker(x, side, xp)
        blocks = self._array("blocks." + side, x, xp, lambda: self._blocks(side))
        size, rows = blocks.shape[-1], x.shape[0]
        assignment = self.tensor.get("assignment")
        order = xp.index(np.zeros(x.shape[1] // size) if assignment is None else assignment, x)
        # [blocks of channels, rows, size] @ [blocks of channels, size, size]
        parts = x.reshape(rows, -1, size).swapaxes(0, 1) @ blocks[order]
        return parts.swapaxes(0, 1).reshape(rows, -1)

    def _hadamard(self, x, xp):
        e = self.entry
        block, order, inverse = e["block"], max(e.get("order", 1), 1), bool(e.get("inverse"))
        sylvester = block // order
        rows = x.shape[0]
        signs = self._array("signs", x, xp) if "signs" in self.tensor else None
        if signs is not None and not inverse:
            x = x * signs
        z = x.reshape(-1, order, sylvester)
        half = 1
        while half < sylvester:
            z = z.reshape(-1, order, sylvester // (2 * half), 2, half)
            z = xp.concat([(z[:, :, :, 0] + z[:, :, :, 1])[..., None, :], (z[:, :, :, 0] - z[:, :, :, 1])[..., None, :]]).reshape(-1, order, sylvester)
            half *= 2
        if order > 1:
            table = self._array("table", x, xp)
            z = (table.T if inverse else table) @ z
        x = (z / math.sqrt(block)).reshape(rows, -1)
        return x * signs if signs is not None and inverse else x

    def _kronecker(self, x, side, xp):
        first, second = self.factors
        k1, k2 = first.width(x.shape[1]), second.width(x.shape[1])
        k1, k2 = k1 or x.shape[1] // k2, k2 or x.shape[1] // k1
        rows = x.shape[0]
        z = second._apply(x.reshape(rows * k1, k2), side, xp).reshape(rows, k1, k2)
        z = first._apply(z.swapaxes(1, 2).reshape(rows * k2, k1), side, xp)
        return z.reshape(rows, k2, k1).swapaxes(1, 2).reshape(rows, k1 * k2)

    def width(self, whole):
        """Channels this operator works on; 0 when only its neighbour knows."""
        e = self.entry
        if self.kind == "identity":
            return e.get("order", 0)
        if self.kind == "hadamard":
            return e.get("channels", e["block"])
        if self.kind == "kronecker":
            return self.factors[0].width(whole) * self.factors[1].width(whole)
        if self.kind == "block_dense" and "assignment" in self.tensor:
            return len(self.tensor["assignment"]) * e["block"]
        return self.tensor["tensor"].shape[-1]

    @property
    def diagonal(self):
        return self.kind in ("scale", "identity")


def forward_all(operators, x, xp=Numpy, shift=None):
    """(X - c) P of a list of operators."""
    x = x if shift is None else x - xp.array(shift, x)
    for operator in operators:
        x = operator.forward(x, xp)
    return x


def weights_all(operators, w, xp=Numpy):
    """W P^-T."""
    for operator in operators:
        w = operator.weights(w, xp)
    return w
