#include "tests/bench/handoff/zmq_pickle.hpp"

#include <array>
#include <cstdio>
#include <map>
#include <sstream>
#include <string>

#include "tests/bench/handoff/plan.hpp"

namespace tokenrouter::bench {

result<zmq_pickle_result> measure_zmq_pickle(const std::vector<int>& cores) {
  std::ostringstream command;
  command << "/usr/bin/python3 ci/bench/zmq_pickle.py --paced " << paced_messages << " --pace-us "
          << pace_ns / 1000 << " --ping-pong " << ping_pong_messages << " --flood "
          << flood_messages << " --warm-up " << warm_up_messages << " --cores";
  for (const int core : cores)
    command << ' ' << core;
  std::FILE* output = popen(command.str().c_str(), "r");
  if (output == nullptr)
    return fail(errc::not_found, "can't start /usr/bin/python3");
  std::string text;
  std::array<char, 256> part{};
  while (std::fgets(part.data(), part.size(), output) != nullptr)
    text += part.data();
  if (pclose(output) != 0)
    return fail(errc::not_found, "ci/bench/zmq_pickle.py failed; is python3-zmq installed?");
  // One line each: name p50_us p99_us messages_per_s.
  std::map<std::string, summary> by_name;
  std::istringstream lines(text);
  std::string name;
  for (summary value; lines >> name >> value.p50_us >> value.p99_us >> value.messages_per_s;)
    by_name[name] = value;
  if (by_name.size() != 4)
    return fail(errc::malformed, "ci/bench/zmq_pickle.py wrote something else: " + text);
  return zmq_pickle_result{by_name["paced_blocking"], by_name["paced_polling"],
                           by_name["ping_pong"], by_name["flood"]};
}

} // namespace tokenrouter::bench
