#include "gpu/library_product.hpp"

#include <array>
#include <string>

#include <cublasLt.h>

#include "gpu/cuda_error.hpp"
#include "gpu/device_memory.hpp"
#include "gpu/loaded_library.hpp"
#include "runtime/core/check.hpp"

namespace tokenrouter::gpu {
namespace {

constexpr std::size_t workspace_bytes = std::size_t{64} << 20;

/// The functions that are used, by their own names.
struct functions {
#define TOKENROUTER_FUNCTION(name) decltype(&::name) name = nullptr
  TOKENROUTER_FUNCTION(cublasLtCreate);
  TOKENROUTER_FUNCTION(cublasLtDestroy);
  TOKENROUTER_FUNCTION(cublasLtMatmul);
  TOKENROUTER_FUNCTION(cublasLtMatmulAlgoGetHeuristic);
  TOKENROUTER_FUNCTION(cublasLtMatmulDescCreate);
  TOKENROUTER_FUNCTION(cublasLtMatmulDescDestroy);
  TOKENROUTER_FUNCTION(cublasLtMatmulDescSetAttribute);
  TOKENROUTER_FUNCTION(cublasLtMatmulPreferenceCreate);
  TOKENROUTER_FUNCTION(cublasLtMatmulPreferenceDestroy);
  TOKENROUTER_FUNCTION(cublasLtMatmulPreferenceSetAttribute);
  TOKENROUTER_FUNCTION(cublasLtMatrixLayoutCreate);
  TOKENROUTER_FUNCTION(cublasLtMatrixLayoutDestroy);
#undef TOKENROUTER_FUNCTION

  result<void> load() {
    const loaded_library library({"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"});
    if (!library)
      return fail(errc::unavailable,
                  "libcublasLt can't be loaded: " + library.fault() +
                      "; install CUDA's cuBLAS or add its folder to LD_LIBRARY_PATH");
    bool complete = true;
    const auto find = [&](const char* name, auto& function) {
      library.find(name, function);
      complete = complete && function;
    };
#define TOKENROUTER_FIND(name) find(#name, name)
    TOKENROUTER_FIND(cublasLtCreate);
    TOKENROUTER_FIND(cublasLtDestroy);
    TOKENROUTER_FIND(cublasLtMatmul);
    TOKENROUTER_FIND(cublasLtMatmulAlgoGetHeuristic);
    TOKENROUTER_FIND(cublasLtMatmulDescCreate);
    TOKENROUTER_FIND(cublasLtMatmulDescDestroy);
    TOKENROUTER_FIND(cublasLtMatmulDescSetAttribute);
    TOKENROUTER_FIND(cublasLtMatmulPreferenceCreate);
    TOKENROUTER_FIND(cublasLtMatmulPreferenceDestroy);
    TOKENROUTER_FIND(cublasLtMatmulPreferenceSetAttribute);
    TOKENROUTER_FIND(cublasLtMatrixLayoutCreate);
    TOKENROUTER_FIND(cublasLtMatrixLayoutDestroy);
#undef TOKENROUTER_FIND
    if (!complete)
      return fail(errc::unavailable, "libcublasLt lacks a function; CUDA 12 or newer is needed");
    return {};
  }
};

void library_check(cublasStatus_t status) {
  check(status == CUBLAS_STATUS_SUCCESS, "cuBLASLt: a call that can't fail failed");
}

/// What the library's calls need beside the operands. Columns of the product are its rows: a
/// row-major matrix is the transpose of the column-major one that the library sees.
struct call_description {
  const functions& f;
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatrixLayout_t weight = nullptr, x = nullptr, y = nullptr;

  call_description(const functions& of, const library_shape& s) : f(of) {
    library_check(f.cublasLtMatmulDescCreate(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    const cublasOperation_t transposed = CUBLAS_OP_T, plain = CUBLAS_OP_N;
    library_check(f.cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_TRANSA,
                                                   &transposed, sizeof transposed));
    library_check(f.cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_TRANSB, &plain,
                                                   sizeof plain));
    const cudaDataType_t out = s.output == product_output::operand ? CUDA_R_16BF : CUDA_R_32F;
    library_check(f.cublasLtMatrixLayoutCreate(&weight, CUDA_R_16BF, s.k, s.columns, s.k));
    library_check(f.cublasLtMatrixLayoutCreate(&x, CUDA_R_16BF, s.k, s.rows, s.k));
    library_check(f.cublasLtMatrixLayoutCreate(&y, out, s.columns, s.rows, s.columns));
  }
  ~call_description() {
    f.cublasLtMatrixLayoutDestroy(y);
    f.cublasLtMatrixLayoutDestroy(x);
    f.cublasLtMatrixLayoutDestroy(weight);
    f.cublasLtMatmulDescDestroy(operation);
  }
  call_description(const call_description&) = delete;
  call_description& operator=(const call_description&) = delete;
};

class products final : public library_products {
 public:
  ~products() override {
    if (handle_)
      f_.cublasLtDestroy(handle_);
  }

  result<void> start() {
    if (auto loaded = f_.load(); !loaded)
      return loaded;
    if (f_.cublasLtCreate(&handle_) != CUBLAS_STATUS_SUCCESS)
      return fail(errc::unavailable, "cuBLASLt can't start on this device");
    auto workspace = device_memory::allocate(workspace_bytes);
    if (!workspace)
      return tl::unexpected(workspace.error());
    workspace_ = std::move(*workspace);
    return {};
  }

  std::vector<std::shared_ptr<const library_plan>> plans(const library_shape& shape,
                                                         std::uint32_t count) override;

 private:
  friend class plan;
  functions f_;
  cublasLtHandle_t handle_ = nullptr;
  device_memory workspace_;
};

class plan final : public library_plan {
 public:
  plan(const products& of, std::shared_ptr<const call_description> call, float beta,
       const cublasLtMatmulAlgo_t& algorithm)
      : of_(of), call_(std::move(call)), beta_(beta), algorithm_(algorithm) {}

  void run(const void* x, const void* weight, void* y, cudaStream_t stream) const override {
    const float one = 1;
    library_check(of_.f_.cublasLtMatmul(of_.handle_, call_->operation, &one, weight, call_->weight,
                                        x, call_->x, &beta_, y, call_->y, y, call_->y, &algorithm_,
                                        of_.workspace_.as(), of_.workspace_.bytes(), stream));
  }

 private:
  const products& of_;
  std::shared_ptr<const call_description> call_;
  float beta_;
  cublasLtMatmulAlgo_t algorithm_;
};

std::vector<std::shared_ptr<const library_plan>> products::plans(const library_shape& shape,
                                                                 std::uint32_t count) {
  constexpr std::uint32_t most = 16;
  const auto call = std::make_shared<const call_description>(f_, shape);
  cublasLtMatmulPreference_t preference = nullptr;
  library_check(f_.cublasLtMatmulPreferenceCreate(&preference));
  library_check(f_.cublasLtMatmulPreferenceSetAttribute(preference,
                                                        CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                        &workspace_bytes, sizeof workspace_bytes));
  std::array<cublasLtMatmulHeuristicResult_t, most> found{};
  int found_count = 0;
  const auto status = f_.cublasLtMatmulAlgoGetHeuristic(
      handle_, call->operation, call->weight, call->x, call->y, call->y, preference,
      static_cast<int>(std::min(count, most)), found.data(), &found_count);
  f_.cublasLtMatmulPreferenceDestroy(preference);
  std::vector<std::shared_ptr<const library_plan>> out;
  const float beta = shape.output == product_output::residual ? 1.0f : 0.0f;
  for (int i = 0; status == CUBLAS_STATUS_SUCCESS && i < found_count; ++i)
    if (found[i].state == CUBLAS_STATUS_SUCCESS)
      out.push_back(std::make_shared<const plan>(*this, call, beta, found[i].algo));
  return out;
}

} // namespace

result<std::unique_ptr<library_products>> library_products::open() {
  auto opened = std::make_unique<products>();
  if (auto started = opened->start(); !started)
    return tl::unexpected(started.error());
  return opened;
}

} // namespace tokenrouter::gpu
