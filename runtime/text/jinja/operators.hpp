#pragma once

#include "runtime/text/jinja/syntax.hpp"
#include "runtime/text/jinja/value.hpp"

/// Python's operators. Faults: kinds that an operator does not take, whole numbers beyond 64 bits,
/// division by zero.
namespace tokenrouter::jinja {

/// Requires an arithmetic operation.
value arithmetic(operation op, const value& a, const value& b, budget& work);

value negated(const value& v);

/// Requires a comparing operation.
bool compares(operation op, const value& a, const value& b, budget& work);

/// `item in container`.
bool contains(const value& container, const value& item, budget& work);

/// from[first:last:step]; a null bound is left out.
value sliced(const value& from, const value* first, const value* last, const value* step,
             budget& work);

/// len(); fault if it has none.
std::int64_t length_of(const value& v, budget& work);

} // namespace tokenrouter::jinja
