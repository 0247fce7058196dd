#include <boost/test/unit_test.hpp>

#include <cmath>
#include <string>
#include <vector>

#include "runtime/exec/heads/head.hpp"
#include "tests/support/command.hpp"

using namespace tokenrouter;
using namespace tokenrouter::test;

namespace {

constexpr std::uint32_t hidden_size = 64;
const std::string routers = "examples/models/abacus/routers/";

/// Writes checkpoints as PyTorch does, without PyTorch. `save(path, tree)` takes `tensor(...)`s in
/// the tree; `abacus(kind)` gives the tensors of a router of the examples.
const std::string writer = R"(
import collections, io, json, pickle, struct, sys, types, zipfile

torch, utils = types.ModuleType("torch"), types.ModuleType("torch._utils")
sys.modules["torch"], sys.modules["torch._utils"] = torch, utils

class FloatStorage:
    def __init__(self, data):
        self.data = data
FloatStorage.__module__ = "torch"
FloatStorage.__qualname__ = "FloatStorage"
torch.FloatStorage = FloatStorage

def _rebuild_tensor_v2(*args):
    raise AssertionError
_rebuild_tensor_v2.__module__ = "torch._utils"
utils._rebuild_tensor_v2 = _rebuild_tensor_v2

class tensor:
    def __init__(self, data, shape, offset=0, stride=None):
        self.storage, self.shape, self.offset = FloatStorage(data), tuple(shape), offset
        self.stride = stride or tuple(strides(shape))
    def __reduce__(self):
        return _rebuild_tensor_v2, (self.storage, self.offset, self.shape, self.stride, False,
                                    collections.OrderedDict())

def strides(shape):
    for i in range(len(shape)):
        n = 1
        for extent in shape[i + 1:]:
            n *= extent
        yield n

def save(path, tree, cut=None, compression=zipfile.ZIP_STORED, raw=None):
    storages, text = [], io.BytesIO()
    class writer(pickle.Pickler):
        def persistent_id(self, x):
            if not isinstance(x, FloatStorage):
                return None
            storages.append(x.data)
            return "storage", FloatStorage, str(len(storages) - 1), "cpu", len(x.data) // 4
    writer(text, protocol=2).dump(tree)
    with zipfile.ZipFile(path, "w", compression) as z:
        z.writestr("router/data.pkl", raw if raw is not None else text.getvalue()[:cut])
        z.writestr("router/byteorder", "little")
        for i, data in enumerate(storages):
            z.writestr(f"router/data/{i}", data)

def abacus(kind):
    with open("examples/models/abacus/routers/" + kind + ".safetensors", "rb") as f:
        length = int.from_bytes(f.read(8), "little")
        header, body = json.loads(f.read(length)), f.read()
    state = collections.OrderedDict()
    for name, x in header.items():
        if name != "__metadata__":
            state[name] = tensor(body[x["data_offsets"][0]:x["data_offsets"][1]], x["shape"])
    return state

def r2r(**changes):
    tree = {"model_type": "HiddenStatesTokenLMHeadLogitsClassifier",
            "init_args": {"hidden_size": 64, "dtype": "float32"},
            "common_args": {"threshold": 0.04, "input_type": "hidden"},
            "model_specific_args": {"normalize_input": False}, "state_dict": abacus("r2r")}
    tree["state_dict"]["token_embeddings.weight"] = tensor(b"\0" * 16, [2, 2])
    tree.update(changes)
    return tree

def citer():
    state = abacus("citer")
    state["mlp.1.num_batches_tracked"] = tensor(b"\0" * 4, [1])
    return state

def collm(row):
    defer = abacus("collm")["defer.weight"].storage.data
    rows = [b"\0\0\0\x40" * 64] * 8
    rows[row] = defer
    return {"lm_head.weight": tensor(b"".join(rows), [8, 64])}

out = sys.argv[1]
)";

struct fixture {
  scratch_folder scratch;
  std::string out = scratch.file("out.safetensors");

  /// Runs `what` after the writer, then converts what it saved as `out`.
  command_result convert(const std::string& kind, const std::string& what,
                         const std::string& options = {}) {
    write_file(scratch.file("make.py"), writer + what);
    const auto made =
        run_command("python3 " + scratch.file("make.py") + " " + scratch.file("in.pt"));
    BOOST_REQUIRE_MESSAGE(made.exit_code == 0, made.output);
    return run_command("cd / && " + command + " --kind " + kind + " " + scratch.file("in.pt") +
                       " -o " + out + " " + options);
  }

  /// From here on the tool runs without the program around it, which starts slowly.
  void without_program() {
    const auto folder = std::filesystem::path(program()).parent_path();
    command = "python3 " + (folder / "share/tokenrouter/convert_router.py").string();
  }

  std::string command = program() + " convert-router";
};

std::vector<float> numbers(std::size_t count, float step) {
  std::vector<float> x(count);
  for (std::size_t i = 0; i < count; ++i)
    x[i] = std::sin(static_cast<float>(i) * step);
  return x;
}

float score_of(const std::string& kind, const std::string& weights) {
  auto head = load_head({kind, weights}, hidden_size);
  BOOST_REQUIRE_MESSAGE(head.has_value(), (head ? std::string() : head.error().message));
  const auto hidden = numbers(hidden_size, 0.7f);
  const auto embedding = numbers(hidden_size, 0.3f);
  const auto logits = numbers((*head)->top_logits_wanted(), 0.01f);
  return (*head)->score({hidden, embedding, logits});
}

} // namespace

BOOST_FIXTURE_TEST_CASE(each_kind_of_checkpoint_becomes_the_router_it_was_saved_from, fixture) {
  struct row {
    std::string kind;
    std::string make;
    std::string options;
  };
  const std::vector<row> rows{{"r2r", "save(out, r2r())", ""},
                              {"citer", "save(out, citer())", "--threshold 0.95"},
                              {"citer", "save(out, {'state_dict': citer()})", "--threshold 0.5"},
                              {"collm", "save(out, collm(5))", "--defer-id 5"}};
  for (const auto& [kind, make, options] : rows) {
    const auto run = convert(kind, make, options);
    BOOST_TEST(run.exit_code == 0, run.output);
    const float score = score_of(kind, out);
    BOOST_TEST(score == score_of(kind, routers + kind + ".safetensors"));
    BOOST_TEST(score > 0.0f);
    BOOST_TEST(score < 1.0f);
  }
}

BOOST_FIXTURE_TEST_CASE(the_threshold_is_the_checkpoints_unless_the_user_says_another, fixture) {
  BOOST_TEST(convert("r2r", "save(out, r2r())").exit_code == 0);
  BOOST_TEST(head_threshold({"r2r", out}).value() == 0.04);
  BOOST_TEST(convert("r2r", "save(out, r2r())", "--threshold 0.25").exit_code == 0);
  BOOST_TEST(head_threshold({"r2r", out}).value() == 0.25);
  BOOST_TEST(convert("citer", "save(out, citer())").exit_code == 0);
  BOOST_TEST(!head_threshold({"citer", out}).has_value());
}

BOOST_FIXTURE_TEST_CASE(the_defer_row_is_found_by_the_tokenizer_beside_the_model, fixture) {
  write_file(scratch.file("added_tokens.json"), R"({"<|defer|>": 3})");
  const auto run = convert("collm", "save(out, collm(3))");
  BOOST_TEST(run.exit_code == 0, run.output);
  BOOST_TEST(score_of("collm", out) == score_of("collm", routers + "collm.safetensors"));
  write_file(scratch.file("added_tokens.json"), "{}");
  write_file(scratch.file("tokenizer.json"),
             R"({"added_tokens": [{"id": 2, "content": "<|defer|>"}]})");
  BOOST_TEST(convert("collm", "save(out, collm(2))").exit_code == 0);
  BOOST_TEST(score_of("collm", out) == score_of("collm", routers + "collm.safetensors"));
}

BOOST_FIXTURE_TEST_CASE(a_model_in_safetensors_gives_its_defer_row_too, fixture) {
  const std::string make = R"(
rows = [b"\0\0\0\x40" * 64] * 8
rows[6] = abacus("collm")["defer.weight"].storage.data
head = json.dumps({"lm_head.weight": {"dtype": "F32", "shape": [8, 64],
                                      "data_offsets": [0, 2048]}}).encode()
with open(out + ".safetensors", "wb") as f:
    f.write(struct.pack("<Q", len(head)) + head + b"".join(rows))
save(out, {})
)";
  convert("collm", make, "--defer-id 0");
  const auto run = run_command(program() + " convert-router --kind collm --defer-id 6 -o " + out +
                               " " + scratch.file("in.pt.safetensors"));
  BOOST_TEST(run.exit_code == 0, run.output);
  BOOST_TEST(score_of("collm", out) == score_of("collm", routers + "collm.safetensors"));
}

BOOST_FIXTURE_TEST_CASE(a_pickle_that_wants_to_run_something_is_refused_by_name, fixture) {
  struct row {
    std::string make;
    std::string says;
  };
  without_program();
  const std::string mark = scratch.file("mark");
  const std::vector<row> rows{
      {"class evil:\n  def __reduce__(self):\n    import os\n    return os.system, ('touch " +
           mark + "',)\nsave(out, r2r(extra=evil()))",
       "posix.system"},
      {"class evil:\n  def __reduce__(self):\n    return eval, ('open(\"" + mark +
           "\", \"w\")',)\nsave(out, r2r(extra=evil()))",
       "__builtin__.eval"},
      {"save(out, None, raw=b\"cbuiltins\\nexec\\n(S'open(\\\"" + mark +
           "\\\",\\\"w\\\")'\\ntR.\")",
       "builtins.exec"},
      {"save(out, None, raw=b\"ctorch._utils\\n_rebuild_tensor_v2.__globals__\\n.\")",
       "_rebuild_tensor_v2.__globals__"},
      {"class odd: pass\nsave(out, r2r(extra=odd()))", "__main__.odd"},
      {"import fractions\nsave(out, r2r(extra=fractions.Fraction(1, 2)))", "fractions.Fraction"},
  };
  for (const auto& [make, says] : rows) {
    const auto run = convert("r2r", make);
    BOOST_TEST(run.exit_code == 2);
    BOOST_TEST(run.output.find(says) != std::string::npos, run.output);
    BOOST_TEST(run.output.find("Traceback") == std::string::npos, run.output);
    BOOST_TEST(!std::filesystem::exists(mark));
    BOOST_TEST(!std::filesystem::exists(out));
  }
}

BOOST_FIXTURE_TEST_CASE(a_checkpoint_that_is_wrong_is_refused_with_its_reason, fixture) {
  struct row {
    std::string kind;
    std::string make;
    std::string says;
  };
  const std::vector<row> rows{
      {"r2r", "save(out, r2r(), cut=-20)", "data.pkl can't be read"},
      {"r2r", "save(out, r2r(), cut=0)", "data.pkl can't be read"},
      {"r2r", "open(out, 'wb').write(b'\\x80\\x02\\x8a\\nlF')", "older than 1.6"},
      {"r2r", "open(out, 'wb').write(b'abc' * 300)", "not a PyTorch zip checkpoint"},
      {"r2r", "save(out, [1, 2])", "no state_dict"},
      {"r2r", "save(out, r2r(), compression=zipfile.ZIP_DEFLATED)", "compressed"},
      {"r2r", "save(out, r2r(model_type='Other'))", "class Other"},
      {"r2r", "save(out, r2r(model_specific_args={'normalize_input': True}))", "normalize_input"},
      {"r2r", "save(out, r2r(common_args={'threshold': 3}))", "threshold 3"},
      {"r2r", "save(out, citer())", "logits_projection.weight"},
      {"r2r", "t = r2r(); del t['state_dict']['backbone.blocks.1.mlp.3.bias']\nsave(out, t)",
       "backbone.blocks.1.mlp.3.bias' is missing"},
      {"r2r", "t = r2r(); t['state_dict']['combined_projection.bias'].shape = (63,)\nsave(out, t)",
       "shape [63], wanted [64]"},
      {"r2r",
       "t = r2r(); t['state_dict']['backbone.blocks.0.dim_change.weight'] = tensor(b'1234', [1])\n"
       "save(out, t)",
       "dim_change"},
      {"r2r", "t = r2r(); t['state_dict']['combined_projection.bias'].offset = 1\nsave(out, t)",
       "reaches beyond"},
      {"r2r",
       "t = r2r(); t['state_dict']['backbone.input_projection.weight'].stride = (1, 64)\n"
       "save(out, t)",
       "not contiguous"},
      {"r2r", "t = r2r(); t['state_dict']['combined_projection.bias'].shape = (-64,)\nsave(out, t)",
       "impossible values"},
      {"r2r", "x = []; x.append(x)\nsave(out, r2r(init_args={'loop': x}))", "too many"},
      {"citer", "s = citer(); s['mlp.4.weight'].shape = (64, 64)\nsave(out, s)",
       "'mlp.4.weight' has shape [64, 64], wanted [64, 128]"},
      {"collm", "save(out, collm(1))", "--defer-id"},
      {"collm", "save(out, citer())", "lm_head.weight"},
  };
  without_program();
  for (const auto& [kind, make, says] : rows) {
    const auto run = convert(kind, make);
    BOOST_TEST(run.exit_code == 2, make);
    BOOST_TEST(run.output.find(says) != std::string::npos, make + "\n" + run.output);
    BOOST_TEST(run.output.find("Traceback") == std::string::npos, run.output);
    BOOST_TEST(!std::filesystem::exists(out), make);
  }
  const auto beyond = convert("collm", "save(out, collm(1))", "--defer-id 8");
  BOOST_TEST(beyond.exit_code == 2);
  BOOST_TEST(beyond.output.find("8 rows") != std::string::npos, beyond.output);
}

BOOST_FIXTURE_TEST_CASE(without_python_the_command_says_what_to_install, fixture) {
  write_file(scratch.file("in.pt"), "x");
  const auto run = run_command("PATH=/nowhere " + program() + " convert-router --kind r2r " +
                               scratch.file("in.pt") + " -o " + out);
  BOOST_TEST(run.exit_code == 2);
  BOOST_TEST(run.output.find("install the package python3") != std::string::npos, run.output);
}
