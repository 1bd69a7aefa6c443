"""Uses of `Any`, and of the application object through it: for tools/codebase_figures.py."""

import ast
import re

from tools.codebase_tree import Figure, Function, Tree, counted

APP_NAMES = {"box", "app"}


def any_uses(tree: Tree) -> Figure:
    """Uses of the name `Any`, imports aside, per 1 000 lines of src."""
    lines = sum(len(module.text.splitlines()) for module in tree.modules)
    names = (n for m in tree.modules for n in m.nodes() if isinstance(n, ast.Name) and n.id == "Any")
    return Figure(round(sum(1 for _ in names) / lines * 1000, 2))


def any_aliases(tree: Tree) -> dict[str, set[str]]:
    """Names that stand for `Any` in each module: `Box = Any`, or imported from a module that says so."""
    found: dict[str, set[str]] = {module.name: {"Any"} for module in tree.modules}
    for module in tree.modules:
        for statement in module.tree.body:
            match statement:
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Name(id="Any")):
                    found[module.name].add(name)
    for module in tree.modules:
        for node in module.nodes():
            if isinstance(node, ast.ImportFrom) and node.module in found:
                found[module.name] |= {a.name for a in node.names} & found[node.module]
    return found


class AppAccesses(ast.NodeVisitor):
    """Attributes read from the application object where mypy sees `Any` instead of its class."""

    def __init__(self, any_names: set[str], getters: set[str]) -> None:
        self.any_names = any_names
        self.getters = getters
        self.scopes: list[dict[str, bool]] = [{}]
        self.lines: list[int] = []

    def is_any(self, annotation: ast.expr | None) -> bool:
        return annotation is None or bool(set(re.findall(r"\w+", ast.unparse(annotation))) & self.any_names)

    def is_unchecked(self, node: ast.expr) -> bool:
        match node:
            case ast.Name(id=name):
                return next((scope[name] for scope in reversed(self.scopes) if name in scope), False)
            case ast.Attribute(value=ast.Name(id="state") | ast.Attribute(attr="state"), attr=name):
                return name in APP_NAMES
            case ast.Attribute(value=ast.Name(id="self"), attr=name):
                return self.scopes[0].get(f"self.{name}", False)
            case ast.Subscript(slice=ast.Constant(value=str(name))):
                return name in APP_NAMES and "state" in ast.unparse(node.value)
            case ast.Call(func=ast.Name(id=name)):
                return name in self.getters
        return False

    def bind(self, target: ast.expr, value: ast.expr) -> None:
        match target, value:
            case ast.Tuple(elts=targets), ast.Tuple(elts=values):
                for one, part in zip(targets, values, strict=False):
                    self.bind(one, part)
            case ast.Name(id=name), _:
                self.scopes[-1][name] = self.is_unchecked(value)
            case ast.Attribute(value=ast.Name(id="self"), attr=name), _:
                self.scopes[0][f"self.{name}"] = self.is_unchecked(value)

    def visit_Assign(self, node: ast.Assign) -> None:
        self.generic_visit(node)
        for target in node.targets:
            self.bind(target, node.value)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self.visit_function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self.visit_function(node)

    def visit_function(self, node: Function) -> None:
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        self.scopes.append({a.arg: a.arg in APP_NAMES and self.is_any(a.annotation) for a in arguments})
        self.generic_visit(node)
        self.scopes.pop()

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if self.is_unchecked(node.value):
            self.lines.append(node.lineno)
        self.generic_visit(node)


def untyped_getters(tree: Tree) -> set[str]:
    """Functions that return the application object, annotated as `Any` or not at all."""
    found = set()
    for module in tree.modules:
        visitor = AppAccesses({"Any"}, set())
        for function in module.functions:
            last = function.body[-1]
            if isinstance(last, ast.Return) and last.value and visitor.is_unchecked(last.value):
                found |= {function.name} if visitor.is_any(function.returns) else set()
    return found


def unchecked_accesses(tree: Tree) -> Figure:
    """Attributes of the application object read through `Any`: request.state, untyped parameters, returns."""
    aliases, getters = any_aliases(tree), untyped_getters(tree)
    places = []
    for module in tree.modules:
        visitor = AppAccesses(aliases[module.name], getters)
        visitor.visit(module.tree)
        places += [f"{module.short}:{line}" for line in visitor.lines]
    return counted(places)
