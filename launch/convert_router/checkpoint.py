"""Reads PyTorch checkpoints of the zip format, and safetensors, without PyTorch.

A checkpoint is a pickle, and a pickle can run anything: here it may name a short list of inert
stand-ins and nothing else. What it asks for beyond tensors and plain values is refused by name,
never run.
"""
import collections
import io
import json
import math
import os
import pickle
import re
import struct
import typing
import zipfile

PICKLE_BYTES_MAX = 64 << 20
JSON_BYTES_MAX = 256 << 20


class Refused(Exception):
    """What is wrong with the input, for the user."""


# dtype as safetensors names it, and bytes of an element
STORAGES = {
    "FloatStorage": ("F32", 4), "DoubleStorage": ("F64", 8), "HalfStorage": ("F16", 2),
    "BFloat16Storage": ("BF16", 2), "LongStorage": ("I64", 8), "IntStorage": ("I32", 4),
    "ShortStorage": ("I16", 2), "CharStorage": ("I8", 1), "ByteStorage": ("U8", 1),
    "BoolStorage": ("BOOL", 1),
}
DTYPES = ("float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8",
          "bool", "float", "double", "half", "long", "int")
ELEMENT_BYTES = dict(STORAGES.values())


class StorageType(typing.NamedTuple):
    name: str


class Dtype(typing.NamedTuple):
    name: str


class Storage(typing.NamedTuple):
    kind: StorageType
    key: str
    count: int


class Tensor(typing.NamedTuple):
    storage: Storage
    offset: int
    shape: tuple
    stride: tuple


def is_count(x):
    return type(x) is int and 0 <= x < 1 << 40


def rebuild_tensor(storage, offset, shape, stride, *_):
    if not (type(storage) is Storage and is_count(offset) and type(shape) is tuple and
            type(stride) is tuple and len(shape) == len(stride) and
            all(map(is_count, shape + stride))):
        raise Refused("a tensor in it is described by impossible values")
    return Tensor(storage, offset, shape, stride)


def rebuild_parameter(data, *_):
    if type(data) is not Tensor:
        raise Refused("a parameter in it is not a tensor")
    return data


def latin1_bytes(text, encoding="latin1"):
    if type(text) is not str or encoding != "latin1":
        raise Refused("bytes in it are written in an unknown way")
    return text.encode("latin1")


class NumpyDtype:
    """A dtype of one number; its byte order comes as pickled state."""

    def __init__(self, code, *_):
        self.code = code
        self.order = "<"

    def __setstate__(self, state):
        self.order = state[1]


def numpy_scalar(dtype, data):
    layout = {"f8": "d", "f4": "f", "i8": "q", "i4": "i"}.get(getattr(dtype, "code", None))
    if layout is None or dtype.order != "<" or type(data) is not bytes or \
            len(data) != struct.calcsize("<" + layout):
        raise Refused("a NumPy number in it is of an unknown type")
    return struct.unpack("<" + layout, data)[0]


STAND_INS = {
    ("collections", "OrderedDict"): collections.OrderedDict,
    ("torch._utils", "_rebuild_tensor_v2"): rebuild_tensor,
    ("torch._utils", "_rebuild_parameter"): rebuild_parameter,
    ("_codecs", "encode"): latin1_bytes,
    ("numpy", "dtype"): NumpyDtype,
    ("numpy.core.multiarray", "scalar"): numpy_scalar,
    ("numpy._core.multiarray", "scalar"): numpy_scalar,
    ("torch", "Size"): tuple,
}
STAND_INS.update({("torch", name): StorageType(name) for name in STORAGES})
STAND_INS.update({("torch", name): Dtype(name) for name in DTYPES})


class InertUnpickler(pickle.Unpickler):
    def find_class(self, module, name):
        found = STAND_INS.get((module, name))
        if found is None:
            raise Refused(f"it wants to run or build {module}.{name}, which no router needs; "
                          "it was not run")
        return found

    def persistent_load(self, pid):
        if not (type(pid) is tuple and len(pid) == 5 and pid[0] == "storage" and
                type(pid[1]) is StorageType and type(pid[2]) is str and
                re.fullmatch(r"[0-9]+", pid[2]) and is_count(pid[4])):
            raise Refused("it refers to something that is not a tensor's storage")
        return Storage(pid[1], pid[2], pid[4])


class TorchFile:
    """A checkpoint in the zip format: `tree` is what was saved; tensors are read when asked for."""

    def __init__(self, path):
        try:
            self.zip = zipfile.ZipFile(path)
        except zipfile.BadZipFile:
            raise Refused("is not a PyTorch zip checkpoint; if it is of a PyTorch older than 1.6, "
                          "load it there and save it again with a newer torch.save") from None
        pickles = [n for n in self.zip.namelist() if n == "data.pkl" or n.endswith("/data.pkl")]
        if len(pickles) != 1:
            raise Refused("has no data.pkl, or several: not a PyTorch checkpoint")
        self.folder = pickles[0][:-len("data.pkl")]
        if self.folder + "byteorder" in self.zip.namelist() and \
                self._read(self.folder + "byteorder", 16).strip() != b"little":
            raise Refused("was saved on a big-endian machine")
        try:
            self.tree = InertUnpickler(io.BytesIO(self._read(pickles[0], PICKLE_BYTES_MAX))).load()
        except Refused:
            raise
        except Exception as e:
            raise Refused(f"its data.pkl can't be read: {e}") from None

    def _entry(self, name):
        try:
            entry = self.zip.getinfo(name)
        except KeyError:
            raise Refused(f"lacks its part {name}") from None
        if entry.compress_type != zipfile.ZIP_STORED:
            raise Refused(f"its part {name} is compressed, which PyTorch never does")
        return entry

    def _read(self, name, bytes_max):
        entry = self._entry(name)
        if entry.file_size > bytes_max:
            raise Refused(f"its part {name} has {entry.file_size} bytes, more than any should have")
        return self.zip.read(entry)

    def read(self, name, tensor, first=0, count=None):
        """(dtype, bytes) of `count` elements from `first` of a contiguous tensor."""
        expected = 1
        for extent, stride in zip(reversed(tensor.shape), reversed(tensor.stride)):
            if extent != 1 and stride != expected:
                raise Refused(f"tensor '{name}' is not contiguous; save tensor.contiguous()")
            expected *= extent
        total = math.prod(tensor.shape)
        count = total if count is None else count
        if tensor.storage.kind.name not in STORAGES:
            raise Refused(f"tensor '{name}' is of an unknown type")
        dtype, width = STORAGES[tensor.storage.kind.name]
        entry = self._entry(f"{self.folder}data/{tensor.storage.key}")
        if first + count > total or (tensor.offset + total) * width > entry.file_size:
            raise Refused(f"tensor '{name}' of shape {list(tensor.shape)} reaches beyond its "
                          f"{entry.file_size} bytes")
        with self.zip.open(entry) as stream:
            stream.seek((tensor.offset + first) * width)
            return dtype, stream.read(count * width)


class SafetensorsFile:
    """The same for safetensors, of which Co-LLM models come too."""

    def __init__(self, path):
        self.stream = open(path, "rb")
        size = os.fstat(self.stream.fileno()).st_size
        length = int.from_bytes(self.stream.read(8), "little")
        if length > min(size, JSON_BYTES_MAX):
            raise Refused("is not a safetensors file")
        try:
            header = json.loads(self.stream.read(length))
            if not all(map(is_count, (n for x in header.values() if "shape" in x
                                      for n in x["shape"] + x["data_offsets"]))):
                raise ValueError
            self.tree = {name: Tensor(Storage(StorageType(x["dtype"]), "", x["data_offsets"][1]),
                                      x["data_offsets"][0], tuple(x["shape"]), ())
                         for name, x in header.items() if name != "__metadata__"}
        except (ValueError, KeyError, TypeError, IndexError, AttributeError):
            raise Refused("its safetensors header can't be read") from None
        self.start, self.size = 8 + length, size

    def read(self, name, tensor, first=0, count=None):
        dtype, total = tensor.storage.kind.name, math.prod(tensor.shape)
        count = total if count is None else count
        width = ELEMENT_BYTES.get(dtype)
        if width is None or not is_count(tensor.offset) or first + count > total or \
                tensor.offset + total * width != tensor.storage.count or \
                self.start + tensor.storage.count > self.size:
            raise Refused(f"tensor '{name}' is described by impossible values")
        self.stream.seek(self.start + tensor.offset + first * width)
        return dtype, self.stream.read(count * width)
