#pragma once

#include "launch/job.hpp"
#include "runtime/ingress/call_parser.hpp"
#include "runtime/ingress/engine.hpp"

namespace tokenrouter {

/// What a job is made of, for those who ask from outside.
engine_facts engine_facts_of(const job_view& view);

/// Tokenizer and chat template of the entry model, and the name it is served under.
call_tools call_tools_of(const job_view& view);

} // namespace tokenrouter
