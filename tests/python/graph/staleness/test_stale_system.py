"""Kinds of staleness: state outside of the program. Contexts, threads, the environment, files, settings of the interpreter."""

import contextvars
import decimal
import io
import locale
import os
import sys
import tempfile
import threading
import warnings

from staleness_kinds import X, kind


ENVIRONMENT = {
    "subscript": lambda: float(os.environ["STALE_SCALE"]),
    "get": lambda: float(os.environ.get("STALE_SCALE", "1")),
    "getenv": lambda: float(os.getenv("STALE_SCALE", "1")),
    "in": lambda: 2.0 if "STALE_SCALE" in os.environ else 1.0,
    "bytes": lambda: float(os.environb.get(b"STALE_SCALE", b"1")),
    "copy": lambda: float(dict(os.environ).get("STALE_SCALE", "1")),
    "expandvars": lambda: len(os.path.expandvars("$STALE_SCALE")),
}


def pytest_generate_tests(metafunc):
    if "environment" in metafunc.fixturenames:
        metafunc.parametrize("environment", ENVIRONMENT)


@kind
def test_context_variable(run):
    v = contextvars.ContextVar("v", default=2.0)
    f = run(lambda x: x * v.get() + v.get(0.0))
    yield f(X)
    token = v.set(3.0)
    yield f(X)
    yield contextvars.Context().run(f, X)
    v.reset(token)
    yield f(X)


@kind
def test_variables_of_a_thread(run):
    local, found = threading.local(), []
    f = run(lambda x: x * getattr(local, "s", 1.0))
    for local.s in (2.0, 3.0):
        yield f(X)
    thread = threading.Thread(target=lambda: found.append(f(X)))
    thread.start()
    thread.join()
    yield found


@kind
def test_which_thread(run):
    found, names = [], {threading.current_thread().name: 2.0}
    f = run(lambda x: x * names.get(threading.current_thread().name, 3.0))
    yield f(X)
    thread = threading.Thread(target=lambda: found.append(f(X)), name="other")
    thread.start()
    thread.join()
    yield found


@kind
def test_environment(run, environment):
    os.environ["STALE_SCALE"] = "2"
    f = run(lambda x: x * ENVIRONMENT[environment]())
    yield f(X)
    os.environ["STALE_SCALE"] = "3"
    yield f(X)
    del os.environ["STALE_SCALE"]
    try:
        yield f(X)
    except KeyError as error:
        yield str(error)


@kind
def test_working_folder(run):
    f, had = run(lambda x: x * len(os.getcwd())), os.getcwd()
    try:
        for folder in ("/", "/usr", "/"):
            os.chdir(folder)
            yield f(X)
    finally:
        os.chdir(had)


@kind
def test_files(run):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "scale")

        def read(x):
            if not os.path.exists(path):
                return x
            with open(path) as file:
                return x * float(file.read())

        f = run(read)
        yield f(X)
        for scale in ("2", "3"):
            with open(path, "w") as file:
                file.write(scale)
            yield f(X)


@kind
def test_file_that_is_open(run):
    file = io.BytesIO(b"\1\2\3\4")
    f = run(lambda x: x * file.read(1)[0], state=file.tell)
    for _ in range(3):
        yield f(X)


@kind
def test_settings_of_the_interpreter(run):
    limit = sys.getrecursionlimit()
    f = run(lambda x: x * (sys.getrecursionlimit() - limit + 1))
    yield f(X)
    try:
        sys.setrecursionlimit(limit + 7)
        yield f(X)
    finally:
        sys.setrecursionlimit(limit)


@kind
def test_list_of_the_path(run):
    f = run(lambda x: x * (2.0 if "/stale" in sys.path else 1.0))
    yield f(X)
    sys.path.append("/stale")
    try:
        yield f(X)
    finally:
        sys.path.remove("/stale")


@kind
def test_context_of_decimals(run):
    f = run(lambda x: x * float(decimal.Decimal(1) / decimal.Decimal(3)) * decimal.getcontext().prec)
    yield f(X)
    with decimal.localcontext() as context:
        context.prec = 3
        yield f(X)


@kind
def test_locale(run):
    f = run(lambda x: x * len(locale.setlocale(locale.LC_NUMERIC)))
    try:
        for name in ("C", "C.UTF-8", "C"):
            locale.setlocale(locale.LC_NUMERIC, name)
            yield f(X)
    finally:
        locale.setlocale(locale.LC_NUMERIC, "C")


@kind
def test_filters_of_warnings(run):
    def warned(x):
        try:
            warnings.warn("stale", UserWarning)
        except UserWarning:
            return x * 2.0
        return x

    f = run(warned)
    with warnings.catch_warnings():
        for action in ("ignore", "error", "ignore"):
            warnings.simplefilter(action)
            yield f(X)


@kind
def test_identity_as_a_number(run):
    first, second = object(), object()
    f = run(lambda x: x * (2.0 if id(o) == id(first) else 3.0))
    for o in (first, second, first):
        yield f(X)


@kind
def test_count_of_references(run):
    o = object()
    f = run(lambda x: x * (2.0 if sys.getrefcount(o) > 10 else 1.0))
    yield f(X)
    kept = [o] * 20
    yield f(X), len(kept)


@kind
def test_process(run):
    parent = os.getpid()
    f = run(lambda x: x * (2.0 if os.getpid() == parent else 3.0))
    yield f(X)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(write, str(f(X).tolist()).encode())
        except BaseException as error:
            os.write(write, type(error).__name__.encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    yield os.read(read, 100).decode()
    os.close(read), os.close(write)
