"""Optimizers: from gradients to new parameter values, in place and in the parameter's own dtype.

A lookup table's gradient comes as Rows. Then only the rows that were read are updated ("lazily"):
momentum, weight decay and moments of the others wait until they are read again. That is how sparse
training is done, but not what the formulas say; lazy=False refuses Rows where it makes a difference,
and Embedding(sparse=False) gives the formulas' own behaviour at the price of the whole table.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from ..cuda import CPU, Array, array_module, is_array, to_device
from ..rows import Rows
from ..scatter import take_rows
from ..tensor import Tensor

_PART = 1 << 17  # bytes of a parameter


class Optimizer:
    """The base: parameter groups, what is remembered of each parameter, and the loop over them.

    parameters: Tensors, or dicts {"params": [...], "lr": ...}: groups with options of their own.
    lazy: whether rows of a table that were not read may wait, see above.

    The options are in `param_groups` and may be changed there at any time. A parameter without a gradient,
    or frozen, is left alone. Subclasses define `update`, and `moments` if they remember anything.
    """

    def __init__(self, parameters: Iterable[Any], lazy: bool = True, **defaults: Any) -> None:
        if isinstance(parameters, Tensor):
            raise TypeError("an optimizer takes a list of Tensors: [x], or model.parameters()")
        groups = list(parameters)
        if not groups:
            raise ValueError("an optimizer needs parameters; a generator that was used up gives none")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        self.lazy = lazy
        self.defaults = defaults
        self.param_groups: list[dict[str, Any]] = []
        self.state: list[list[dict[str, Any]]] = []
        for group in groups:
            self.add_param_group(group)

    def add_param_group(self, group: dict[str, Any]) -> None:
        """Take in parameters with options of their own: {"params": [...], "lr": ...}."""
        if not isinstance(group, dict) or "params" not in group:
            raise TypeError(f"a parameter group is a dict with 'params', not {str(group)[:60]}")
        self._check_names(set(group) - {"params"} - set(self.defaults))
        params = [group["params"]] if isinstance(group["params"], Tensor) else list(group["params"])
        held = {id(p) for g in self.param_groups for p in g["params"]}
        for p in params:
            if not isinstance(p, Tensor) or not p.is_leaf:
                raise TypeError("an optimizer updates leaves: parameters, or Tensors that no operation made")
            if id(p) in held:
                raise ValueError(f"a parameter of shape {p.shape} is given twice")
            held.add(id(p))
        options = _options_of({**self.defaults, **group})
        self.check(options)
        self.param_groups.append({**options, "params": params})
        self.state.append([{} for _ in params])

    def check(self, options: dict[str, Any]) -> None:
        """Raise ValueError for options that make no sense."""
        for name in ("lr", "eps", "weight_decay"):
            if not 0 <= options.get(name, 0) < math.inf:
                raise ValueError(f"{type(self).__name__}: {name} is {options[name]}, it must be 0 or more")

    def zero_grad(self) -> None:
        """Forget the gradients, which otherwise add up."""
        for group in self.param_groups:
            for p in group["params"]:
                p.grad = None

    def step(self) -> None:
        """Update every parameter that has a gradient."""
        for group, states in zip(self.param_groups, self.state, strict=True):
            options = _options_of(group)
            for p, state in zip(group["params"], states, strict=True):
                if p.grad is not None:
                    with p.device.active():
                        self._step(p, p.grad, state, options)

    def _step(self, p: Tensor, grad: Tensor | Rows, state: dict[str, Any], options: dict[str, Any]) -> None:
        for name in self.moments(options):
            if name in state:  # the parameter may have moved, or changed its dtype, since
                state[name] = to_device(state[name], p.device).astype(p.dtype, copy=False)
            else:
                state[name] = array_module(p.data).zeros(p.shape, dtype=p.dtype)
        if isinstance(grad, Rows):
            self._check_lazy(options)
            self.update_rows(p.data, grad, state, options)
        else:
            self._update_in_parts(p.data, grad.data, state, options)
        p.mark_written()

    def _update_in_parts(self, p: Array, grad: Array, state: dict[str, Any], options: dict[str, Any]) -> None:
        """`update`, on a CPU some rows at a time: its many passes then find them in the processor's cache."""
        if type(p) is not np.ndarray or p.nbytes <= _PART:
            self.update(p, grad, state, options)
            return
        rows = max(_PART // p[:1].nbytes, 1)
        for start in range(0, len(p), rows):
            some = slice(start, start + rows)
            part = {name: value[some] if is_array(value) else value for name, value in state.items()}
            self.update(p[some], grad[some], part, options)
        state.update({name: value for name, value in part.items() if not is_array(value)})

    def moments(self, options: dict[str, Any]) -> tuple[str, ...]:
        """Names of the arrays in `state` that `update` needs: of the parameter's shape, 0 at the start."""
        return ()

    def update(self, p: Array, grad: Array, state: dict[str, Any], options: dict[str, Any]) -> None:
        """Write new values into p and the arrays of state. grad has p's shape; it must not be changed.

        It may be handed some rows of a parameter at a time, so it has to work entry by entry.
        """
        raise NotImplementedError(f"{type(self).__name__} must define update(self, p, grad, state, options)")

    def update_rows(self, p: Array, grad: Rows, state: dict[str, Any], options: dict[str, Any]) -> None:
        """The same for the rows that were read: take them and their state out, update, put back."""
        grad = grad.coalesce()
        index = grad.index
        rows = take_rows(p, index)
        part = {name: take_rows(value, index) if is_array(value) else value for name, value in state.items()}
        self._update_in_parts(rows, grad.values, part, options)
        p[index] = rows
        for name, value in part.items():
            if is_array(value):
                state[name][index] = value
            else:
                state[name] = value

    def moves_unread(self, options: dict[str, Any]) -> str:
        """What would have moved rows with gradient 0, too, in words; "" where nothing would."""
        return ""

    def _check_lazy(self, options: dict[str, Any]) -> None:
        what = self.moves_unread(options)
        if what and not self.lazy:
            raise RuntimeError(
                f"{type(self).__name__}: {what} moves every row of a table, its gradient has those read: "
                "let the others wait with lazy=True, or use Embedding(sparse=False)"
            )

    def state_dict(self) -> dict[str, Any]:
        """Options and state of every group, copied to the host: for metagrad.save."""
        return {"param_groups": [*map(_options_of, self.param_groups)], "state": _copied(self.state)}

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Continue from the state_dict of an optimizer of this kind over the same parameters, in their order.

        Raises, before anything is changed, ValueError where number or shapes of the parameters differ, and
        TypeError for options of another kind of optimizer.
        """
        groups, state = saved["param_groups"], _copied(saved["state"])
        own, new = [len(states) for states in self.state], [len(states) for states in state]
        if own != new:
            raise ValueError(f"load_state_dict: the groups have {own} parameters, the state is of {new}")
        for group, options, states in zip(self.param_groups, groups, state, strict=True):
            self._check_names(set(options) ^ set(self.defaults))
            for i, (p, moments) in enumerate(zip(group["params"], states, strict=True)):
                for name, value in moments.items():
                    if is_array(value) and value.shape != p.shape:
                        raise ValueError(
                            f"load_state_dict: {name} of parameter {i} has shape {value.shape}, not {p.shape}"
                        )
        for group, options in zip(self.param_groups, groups, strict=True):
            group.update(options)
        self.state = state

    def _check_names(self, unknown: set[str]) -> None:
        if unknown:
            raise TypeError(
                f"{type(self).__name__}: {sorted(unknown)} does not match its options {sorted(self.defaults)}"
            )


class SGD(Optimizer):
    """p ← p − lr·g, where weight_decay·p is added to g first.

    With momentum μ: b ← μ b + g, and b takes the place of g; with nesterov, g + μ b does.
    """

    def __init__(
        self,
        parameters: Iterable[Any],
        lr: float = 1e-3,
        momentum: float = 0.0,
        *,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        lazy: bool = True,
    ) -> None:
        options = {"lr": lr, "momentum": momentum, "weight_decay": weight_decay, "nesterov": nesterov}
        super().__init__(parameters, lazy, **options)

    def check(self, options):
        super().check(options)
        if not 0 <= options["momentum"] < 1:
            raise ValueError(f"SGD: momentum is {options['momentum']}, it must lie in [0, 1)")
        if options["nesterov"] and not options["momentum"]:
            raise ValueError("SGD: nesterov is a form of momentum, which is 0")

    def moments(self, options):
        return ("momentum",) if options["momentum"] else ()

    def update(self, p, grad, state, options):
        if options["weight_decay"]:
            grad = grad + options["weight_decay"] * p
        if options["momentum"]:
            mean = state["momentum"]
            mean *= options["momentum"]
            mean += grad
            grad = grad + options["momentum"] * mean if options["nesterov"] else mean
        p -= options["lr"] * grad

    def update_rows(self, p, grad, state, options):
        if self.moves_unread(options):
            super().update_rows(p, grad, state, options)
        else:  # linear in the gradient, so repeated rows need not be added up first
            grad.add_to(p, -options["lr"])

    def moves_unread(self, options):
        return " and ".join(name for name in ("momentum", "weight_decay") if options[name])


class Adagrad(Optimizer):
    """s ← s + g²; p ← p − lr·g / (√s + eps), where weight_decay·p is added to g first (Duchi et al. 2011).

    Rows that were not read have g = 0 and would not move: updating only those read is exact.
    """

    def __init__(
        self,
        parameters: Iterable[Any],
        lr: float = 1e-2,
        *,
        eps: float = 1e-10,
        weight_decay: float = 0.0,
        lazy: bool = True,
    ) -> None:
        super().__init__(parameters, lazy, lr=lr, eps=eps, weight_decay=weight_decay)

    def moments(self, options):
        return ("sum",)

    def update(self, p, grad, state, options):
        if options["weight_decay"]:
            grad = grad + options["weight_decay"] * p
        xp = array_module(p)
        change = grad * grad  # one array for all that follows: memory traffic is what a large step costs
        state["sum"] += change
        xp.sqrt(state["sum"], out=change)
        change += options["eps"]
        xp.divide(grad, change, out=change)
        change *= options["lr"]
        p -= change

    def moves_unread(self, options):
        return "weight_decay" if options["weight_decay"] else ""


class Adam(Optimizer):
    """m ← β₁m + (1−β₁)g, v ← β₂v + (1−β₂)g²; p ← p − lr·m̂ / (√v̂ + eps) (Kingma and Ba 2015).

    m̂ = m / (1−β₁ᵗ) and v̂ = v / (1−β₂ᵗ) make up for the start at 0. weight_decay·p is added to g first.
    t counts the parameter's steps, also for rows that were not read.
    """

    decoupled = False

    def __init__(
        self,
        parameters: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        *,
        lazy: bool = True,
    ) -> None:
        super().__init__(parameters, lazy, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay)

    def check(self, options):
        super().check(options)
        betas = options["betas"]
        if len(betas) != 2 or not all(0 <= beta < 1 for beta in betas):
            raise ValueError(f"{type(self).__name__}: betas are two numbers in [0, 1), not {betas}")

    def moments(self, options):
        return ("mean", "square")

    def update(self, p, grad, state, options):
        (beta1, beta2), lr, decay = options["betas"], options["lr"], options["weight_decay"]
        if decay and self.decoupled:
            p *= 1 - lr * decay
        elif decay:
            grad = grad + decay * p
        t = state["step"] = state.get("step", 0) + 1
        mean, square, xp = state["mean"], state["square"], array_module(p)
        change = grad * (1 - beta1)  # one array for all that follows, as in Adagrad
        mean *= beta1
        mean += change
        xp.multiply(grad, grad, out=change)
        change *= 1 - beta2
        square *= beta2
        square += change
        xp.sqrt(square, out=change)
        change *= (1 - beta2**t) ** -0.5
        change += options["eps"]
        xp.divide(mean, change, out=change)
        change *= lr / (1 - beta1**t)
        p -= change

    def moves_unread(self, options):
        return "the mean of past gradients"


class AdamW(Adam):
    """Adam with p ← p − lr·weight_decay·p apart from the moments (Loshchilov and Hutter 2019)."""

    decoupled = True

    def __init__(
        self,
        parameters: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        *,
        lazy: bool = True,
    ) -> None:
        super().__init__(parameters, lr, betas, eps, weight_decay, lazy=lazy)


def _copied(state: list[list[dict[str, Any]]]) -> list[list[dict[str, Any]]]:
    """The state of all groups, its arrays copied to the host."""
    return [
        [{k: np.array(to_device(v, CPU)) if is_array(v) else v for k, v in part.items()} for part in group]
        for group in state
    ]


def _options_of(group: dict[str, Any]) -> dict[str, Any]:
    """A group's options, without its parameters, as Python numbers: NumPy's would widen float32 arrays."""
    return {name: _plain(value) for name, value in group.items() if name != "params"}


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return tuple(map(_plain, value))
    return value.item() if hasattr(value, "item") else value
