#include <boost/test/unit_test.hpp>

#include <signal.h>

#include <chrono>
#include <thread>

#include "tests/support/server.hpp"

using namespace tokenrouter::test;
using nlohmann::json;

namespace {

const std::string config = "configs/r2r/abacus-xs_abacus-m.yaml";
const std::string question = "What is 4822 + 22 - 2763?";

/// One server on two ranks for all tests but those that end it.
test_server& shared_server() {
  static test_server server(2, config, "--set serve.body_bytes_max=100000");
  return server;
}

json chat_body(int max_tokens = 200) {
  return {{"model", "tokenrouter"},
          {"messages", {{{"role", "user"}, {"content", question}}}},
          {"temperature", 0},
          {"max_tokens", max_tokens}};
}

json endless_body() {
  return {{"prompt", "1 2 3"}, {"max_tokens", 1500}, {"ignore_eos", true}, {"temperature", 0}};
}

/// What `generate` makes of the same question in one process.
json generated() {
  const scratch_folder scratch;
  write_file(scratch.file("in.jsonl"), chat_body().dump() + "\n");
  const auto run = run_command(program() + " generate --config " + config + " --prompts " +
                               scratch.file("in.jsonl") + " --max-new-tokens 200 --output " +
                               scratch.file("out.jsonl"));
  BOOST_REQUIRE_MESSAGE(run.exit_code == 0, run.output);
  return json::parse(read_file(scratch.file("out.jsonl")));
}

bool becomes(const test_server& server, const std::string& metric, double value) {
  for (int i = 0; i < 500; ++i) {
    if (server.metric(metric) == value)
      return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_chat_is_answered_as_generate_answers_it) {
  const auto expected = generated();
  http_client client(shared_server().port());
  json body = chat_body();
  body["return_token_ids"] = true;
  body["routing"] = true;
  const auto answer = client.post("/v1/chat/completions", body);
  BOOST_REQUIRE_MESSAGE(answer.status == 200, answer.body);
  BOOST_TEST(answer.headers.at("content-type") == "application/json");
  const auto out = answer.json();
  const auto& choice = out["choices"][0];
  BOOST_TEST(out["object"] == "chat.completion");
  BOOST_TEST(choice["message"]["role"] == "assistant");
  BOOST_TEST(choice["message"]["content"] == expected["text"]);
  BOOST_TEST(choice["token_ids"] == expected["token_ids"]);
  BOOST_TEST(choice["finish_reason"] == expected["finish_reason"]);
  BOOST_TEST(choice["routing"]["models"] == expected["models"]);
  BOOST_TEST(choice["routing"]["handoffs"] == expected["usage"]["handoffs"]);
  for (const char* count : {"prompt_tokens", "completion_tokens", "total_tokens"})
    BOOST_TEST(out["usage"][count] == expected["usage"][count], count);
}

BOOST_AUTO_TEST_CASE(a_stream_says_the_same_in_pieces) {
  http_client client(shared_server().port());
  json body = chat_body();
  const auto whole = client.post("/v1/chat/completions", body).json();
  body["stream"] = true;
  body["stream_options"] = {{"include_usage", true}};
  const auto answer = client.post("/v1/chat/completions", body);
  BOOST_REQUIRE_MESSAGE(answer.status == 200, answer.body);
  BOOST_TEST(answer.headers.at("content-type") == "text/event-stream; charset=utf-8");
  const auto events = events_of(answer.body);
  BOOST_REQUIRE(events.size() > 5u);
  BOOST_TEST(events.back() == "[DONE]");
  std::string text, finish;
  for (std::size_t i = 0; i + 2 < events.size(); ++i) {
    const auto chunk = json::parse(events[i]);
    BOOST_TEST(chunk["object"] == "chat.completion.chunk");
    BOOST_TEST(chunk["id"] == json::parse(events[0])["id"]);
    BOOST_TEST(chunk["usage"].is_null());
    const auto& choice = chunk["choices"][0];
    BOOST_TEST(choice["delta"].contains("role") == (i == 0));
    text += choice["delta"].value("content", "");
    if (!choice["finish_reason"].is_null())
      finish += choice["finish_reason"].get<std::string>();
  }
  BOOST_TEST(text == whole["choices"][0]["message"]["content"].get<std::string>());
  BOOST_TEST(finish == whole["choices"][0]["finish_reason"].get<std::string>());
  const auto last = json::parse(events[events.size() - 2]);
  BOOST_TEST(last["choices"].empty());
  // The second call finds the first one's prompt in the cache.
  BOOST_TEST(last["usage"]["total_tokens"] == whole["usage"]["total_tokens"]);
}

BOOST_AUTO_TEST_CASE(text_ends_before_a_stop_string_and_tokens_with_it) {
  http_client client(shared_server().port());
  json body = chat_body();
  const auto whole = client.post("/v1/chat/completions", body)
                         .json()["choices"][0]["message"]["content"]
                         .get<std::string>();
  // Cuts across tokens: found in the text, wherever they end.
  const std::string stop = whole.substr(whole.size() / 2, 5);
  for (const bool stream : {false, true}) {
    body["stop"] = {"never in there", stop};
    body["stream"] = stream;
    const auto answer = client.post("/v1/chat/completions", body);
    BOOST_REQUIRE_MESSAGE(answer.status == 200, answer.body);
    std::string text, finish;
    if (stream) {
      for (const auto& event : events_of(answer.body))
        if (event != "[DONE]") {
          const auto choice = json::parse(event)["choices"][0];
          text += choice["delta"].value("content", "");
          finish = choice["finish_reason"].is_null() ? "" : choice["finish_reason"];
        }
    } else {
      text = answer.json()["choices"][0]["message"]["content"];
      finish = answer.json()["choices"][0]["finish_reason"];
    }
    BOOST_TEST(text == whole.substr(0, whole.find(stop)));
    BOOST_TEST(finish == "stop");
  }
  BOOST_TEST(becomes(shared_server(), "tokenrouter_requests_running", 0));
}

BOOST_AUTO_TEST_CASE(choices_of_one_seed_repeat_and_differ_from_each_other) {
  http_client client(shared_server().port());
  const json body = {{"prompt", {"Maya has 347 stickers.", "What is"}},
                     {"max_tokens", 24},
                     {"n", 2},
                     {"seed", 7},
                     {"temperature", 1.5}};
  const auto first = client.post("/v1/completions", body).json();
  const auto again = client.post("/v1/completions", body).json();
  BOOST_REQUIRE(first["choices"].size() == 4u);
  for (int i = 0; i < 4; ++i) {
    BOOST_TEST(first["choices"][i]["index"] == i);
    BOOST_TEST(first["choices"][i]["text"] == again["choices"][i]["text"]);
  }
  BOOST_TEST(first["choices"][2]["text"] != first["choices"][3]["text"]);
  BOOST_TEST(first["usage"]["completion_tokens"].get<int>() <= 96);
}

BOOST_AUTO_TEST_CASE(what_is_wrong_is_said_with_the_field_at_fault) {
  struct row {
    const char *path, *body;
    int status;
    const char* param; ///< null: none
    const char* part;
  };
  const std::string long_prompt(60'000, '7');
  const std::string long_body = "{\"prompt\": \"" + long_prompt + "\"}";
  http_client client(shared_server().port());
  for (const auto& x : std::vector<row>{
           {"/v1/completions", "{", 400, nullptr, "JSON"},
           {"/v1/completions", "[1]", 400, nullptr, "object"},
           {"/v1/completions", "{}", 400, "prompt", "missing"},
           {"/v1/completions", R"({"prompt": "a", "best": 1, "worst": 2})", 400, "best", "'worst'"},
           {"/v1/completions", R"({"prompt": "a", "temperature": -1})", 400, "temperature", "0"},
           {"/v1/completions", R"({"prompt": "a", "frequency_penalty": 1})", 400,
            "frequency_penalty", "not supported"},
           {"/v1/completions", R"({"prompt": "a", "max_tokens": 0})", 400, "max_tokens", "least"},
           {"/v1/completions", R"({"prompt": "a", "model": "other"})", 404, "model", "other"},
           {"/v1/completions", R"({"prompt": [99999]})", 400, "prompt", "vocabulary"},
           {"/v1/completions", R"({"prompt": ["a", 5]})", 400, "prompt[1]", "token ids"},
           {"/v1/completions", R"({"prompt": "a", "stop": ["x", ""]})", 400, "stop", "empty"},
           {"/v1/completions", R"({"prompt": "a", "stream_options": {}})", 400, "stream_options",
            "stream"},
           {"/v1/completions", R"({"prompt": "a", "routing": {"thresold": 1}})", 400,
            "routing.thresold", "not supported"},
           {"/v1/completions", long_body.c_str(), 400, "prompt", "context"},
           {"/v1/chat/completions", R"({"messages": []})", 400, "messages", "at least one"},
           {"/v1/chat/completions", R"({"messages": [{"role": "user"}]})", 400,
            "messages[0].content", "missing"},
           {"/v1/chat/completions",
            R"({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]})", 400,
            "messages[0].content[0]", "only text"},
           {"/v1/chat/completions",
            R"({"messages": [{"role": "user", "content": "a"}], "top_logprobs": 2})", 400,
            "top_logprobs", "logprobs"},
           {"/nothing", "{}", 404, nullptr, "/nothing"},
           {"/v1/models", "{}", 405, nullptr, "POST"},
       }) {
    const auto answer = client.post(x.path, std::string(x.body));
    BOOST_TEST_CONTEXT(std::string(x.body).substr(0, 100)) {
      BOOST_TEST(answer.status == x.status, answer.body);
      const auto error = answer.json()["error"];
      BOOST_TEST(error["param"] == (x.param == nullptr ? json(nullptr) : json(x.param)),
                 answer.body);
      BOOST_TEST((error["message"].get<std::string>().find(x.part) != std::string::npos),
                 answer.body);
      BOOST_TEST(!error["type"].get<std::string>().empty());
    }
  }
}

BOOST_AUTO_TEST_CASE(what_is_too_large_or_not_http_is_refused_and_hung_up_on) {
  const auto port = shared_server().port();
  http_client body(port), header(port), noise(port);
  BOOST_TEST(body.post("/v1/completions", std::string(200'000, ' ')).status == 413);
  header.send("GET /health HTTP/1.1\r\nX: " + std::string(20'000, 'x') + "\r\n\r\n");
  BOOST_TEST(header.read_answer().status == 431);
  noise.send("\x16\x03\x01 this is not for you\r\n\r\n");
  BOOST_TEST(noise.read_answer().status == 400);
  for (auto* client : {&body, &header, &noise})
    BOOST_TEST(!client->read_until("anything"));
}

BOOST_AUTO_TEST_CASE(calls_sent_ahead_are_answered_in_order) {
  http_client client(shared_server().port());
  const std::string body = R"({"prompt": "a", "max_tokens": 2})";
  const std::string call =
      "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(body.size()) +
      "\r\n\r\n" + body;
  client.send(call + "GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n" + call);
  BOOST_TEST(client.read_answer().json()["object"] == "text_completion");
  BOOST_TEST(client.read_answer().json()["object"] == "list");
  BOOST_TEST(client.read_answer().json()["object"] == "text_completion");
}

BOOST_AUTO_TEST_CASE(a_client_that_hangs_up_cancels_its_request) {
  auto& server = shared_server();
  for (const bool stream : {true, false}) {
    const double before = server.metric("vllm:request_success_total");
    http_client client(server.port());
    json body = endless_body();
    body["stream"] = stream;
    const std::string text = body.dump();
    client.send("POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: " +
                std::to_string(text.size()) + "\r\n\r\n" + text);
    if (stream)
      BOOST_TEST(client.read_until("data: "));
    else
      BOOST_TEST(becomes(server, "tokenrouter_requests_running", 1));
    client.close();
    BOOST_TEST(becomes(server, "tokenrouter_requests_running", 0));
    BOOST_TEST(becomes(server, "vllm:request_success_total", before + 1));
    const auto counts = http_client(server.port()).get("/v1/routing").json()["requests"];
    BOOST_TEST(counts["cancelled"].get<int>() >= 1);
    BOOST_TEST(counts["waiting"] == 0);
  }
}

BOOST_AUTO_TEST_CASE(a_client_that_closes_its_sending_side_still_gets_its_answers) {
  const auto& server = shared_server();
  for (const bool stream : {true, false}) {
    http_client client(server.port());
    json body = chat_body();
    body["stream"] = stream;
    const std::string text = body.dump();
    const std::string call = "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: " +
                             std::to_string(text.size()) + "\r\n\r\n" + text;
    client.send(call + call);
    client.close_sending();
    for (int i = 0; i < 2; ++i) {
      auto answer = client.read_answer();
      if (answer.status == 100) // may come before any
        answer = client.read_answer();
      BOOST_TEST(answer.status == 200);
      BOOST_TEST((answer.body.find(stream ? "[DONE]" : "finish_reason") != std::string::npos));
    }
    BOOST_TEST(!client.read_until("anything")); // and nobody waits for more
  }
}

BOOST_AUTO_TEST_CASE(a_client_that_takes_nothing_is_cut_off) {
  test_server server(0, config, "--set serve.unsent_bytes_max=20000");
  http_client client(server.port(), 4096);
  json body = endless_body();
  body["stream"] = true;
  body["n"] = 16;
  body["logprobs"] = 0; // makes chunks longer
  const std::string text = body.dump();
  client.send("POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: " +
              std::to_string(text.size()) + "\r\n\r\n" + text);
  BOOST_REQUIRE(becomes(server, "tokenrouter_requests_running", 16));
  for (int i = 0; i < 20 && !becomes(server, "tokenrouter_requests_running", 0); ++i)
    continue;
  const auto counts = http_client(server.port()).get("/v1/routing").json()["requests"];
  BOOST_TEST(counts["cancelled"] == 16);
}

BOOST_AUTO_TEST_CASE(connections_beyond_the_limit_are_told_to_come_again) {
  test_server server(0, config, "--set serve.connections_max=2");
  std::vector<std::unique_ptr<http_client>> open;
  http_answer refused;
  for (int i = 0; i < 3; ++i) {
    open.push_back(std::make_unique<http_client>(server.port()));
    refused = open.back()->get("/v1/models");
    BOOST_TEST(refused.status == (i < 2 ? 200 : 503));
  }
  BOOST_TEST(refused.headers.contains("retry-after"));
  open.erase(open.begin());
  for (int i = 0; i < 100 && refused.status != 200; ++i) {
    refused = http_client(server.port()).get("/v1/models");
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  BOOST_TEST(refused.status == 200);
}

BOOST_AUTO_TEST_CASE(a_rank_that_hangs_makes_it_unhealthy_until_it_goes_on) {
  test_server server(2, config, "--set system.peer_timeout_ms=60000");
  http_client client(server.port());
  BOOST_TEST(client.get("/health").status == 200);
  const auto becomes_status = [&](int status) {
    http_answer answer;
    for (int i = 0; i < 200 && answer.status != status; ++i) {
      answer = client.get("/health");
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return answer;
  };
  kill(server.process_of(1), SIGSTOP);
  const auto hung = becomes_status(503);
  kill(server.process_of(1), SIGCONT);
  BOOST_TEST(hung.status == 503);
  BOOST_TEST((hung.body.find("rank 1") != std::string::npos), hung.body);
  BOOST_TEST(becomes_status(200).status == 200);
}

BOOST_AUTO_TEST_CASE(a_signal_lets_requests_end_and_no_others_begin) {
  test_server server(2, config);
  http_client streaming(server.port()), other(server.port());
  json body = endless_body();
  body["stream"] = true;
  body["max_tokens"] = 600;
  const std::string text = body.dump();
  streaming.send("POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: " +
                 std::to_string(text.size()) + "\r\n\r\n" + text);
  BOOST_REQUIRE(becomes(server, "tokenrouter_requests_running", 1));
  kill(server.leader(), SIGTERM);
  http_answer health;
  for (int i = 0; i < 100 && health.status != 503; ++i)
    health = http_client(server.port()).get("/health");
  BOOST_TEST(health.status == 503);
  BOOST_TEST(health.json()["status"] == "draining");
  const auto refused = other.post("/v1/completions", endless_body());
  BOOST_TEST(refused.status == 503);
  BOOST_TEST(refused.headers.contains("retry-after"));
  const auto answer = streaming.read_answer();
  const auto events = events_of(answer.body);
  BOOST_REQUIRE(events.size() > 2u);
  BOOST_TEST(events.back() == "[DONE]");
  BOOST_TEST(json::parse(events[events.size() - 2])["choices"][0]["finish_reason"] == "length");
  BOOST_TEST(server.wait() == 0, server.output());
}

BOOST_AUTO_TEST_CASE(what_does_not_end_in_time_is_cancelled) {
  test_server server(0, config, "--set serve.drain_timeout_ms=100");
  http_client client(server.port());
  json body = endless_body();
  body["n"] = 16;
  const std::string text = body.dump();
  client.send("POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: " +
              std::to_string(text.size()) + "\r\n\r\n" + text);
  BOOST_REQUIRE(becomes(server, "tokenrouter_requests_running", 16));
  kill(server.leader(), SIGTERM);
  BOOST_TEST(client.read_answer().status == 503);
  BOOST_TEST(server.wait() == 0, server.output());
}

BOOST_AUTO_TEST_CASE(a_second_signal_ends_it_at_once) {
  test_server server(0, config);
  http_client client(server.port());
  const std::string text = endless_body().dump();
  client.send("POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: " +
              std::to_string(text.size()) + "\r\n\r\n" + text);
  BOOST_REQUIRE(becomes(server, "tokenrouter_requests_running", 1));
  kill(server.leader(), SIGTERM);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  kill(server.leader(), SIGTERM);
  BOOST_TEST(server.wait() == 128 + SIGTERM, server.output());
}

BOOST_AUTO_TEST_CASE(an_address_that_is_taken_is_a_failed_start) {
  const auto run = run_command(program() + " serve --config " + config + " --port " +
                               std::to_string(shared_server().port()));
  BOOST_TEST(run.exit_code == 2, run.output);
  BOOST_TEST((run.output.find("can't listen on 127.0.0.1:") != std::string::npos), run.output);
}
