#include "runtime/ingress/http_session.hpp"

#include <chrono>
#include <optional>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/status.hpp>
#include <boost/beast/http/string_body.hpp>
#include <fmt/format.h>

#include "runtime/ingress/api_error.hpp"

namespace tokenrouter {

namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;
using std::chrono::milliseconds;

constexpr std::size_t read_ahead_bytes_max = 65'536;
constexpr std::uint32_t linger_ms = 1000;
constexpr const char* go_on = "HTTP/1.1 100 Continue\r\n\r\n"; ///< changes nothing, at any time

/// One connection. Everything runs on its socket's strand. It reads a call, hands it to the service
/// and stays ready to read, so that it notices when the client goes away; what is written waits in
/// `out_`.
class http_session final : public exchange, public std::enable_shared_from_this<http_session> {
 public:
  http_session(asio::ip::tcp::socket socket, std::shared_ptr<http_shared> shared)
      : socket_(std::move(socket)), deadline_(socket_.get_executor()), shared_(std::move(shared)) {
    ++shared_->connections;
  }
  ~http_session() override {
    if (!closed_)
      uncount();
  }

  void run() { read_call(); }
  void refuse();

  void reply(http_reply x) override;
  void begin_stream() override;
  void write_piece(std::string piece) override;
  void end_stream() override;
  std::size_t unsent_bytes() const override { return out_.size() + sending_.size() - sent_bytes_; }
  void abort() override { close(); }
  void on_client_gone(std::function<void()> what) override;
  void post(std::function<void()> what) override;
  void after_ms(unsigned ms, std::function<void()> what) override;

 private:
  using call_parser_type = http::request_parser<http::string_body>;

  void read_call();
  void on_header(error_code ec);
  void on_body(error_code ec);
  void dispatch();
  void refuse_call(error_code ec);
  void watch();
  void on_half_close();
  void on_watch(error_code ec, std::size_t bytes);
  void answer_done();
  void send(std::string bytes);
  void send_some();
  void on_sent(error_code ec, std::size_t bytes);
  void linger();
  void close();
  void set_deadline(std::uint32_t ms);
  void set_busy(bool busy);
  void uncount();
  std::string head(unsigned status, const std::string& content_type);

  asio::ip::tcp::socket socket_;
  asio::steady_timer deadline_;
  std::shared_ptr<http_shared> shared_;
  boost::beast::flat_buffer in_;
  std::optional<call_parser_type> parser_;
  std::string out_;     ///< waits behind `sending_`
  std::string sending_; ///< belongs to the write in progress
  std::size_t sent_bytes_ = 0;
  std::function<void()> client_gone_;
  std::uint64_t deadline_turn_ = 0; ///< a timer of an earlier one has nothing to say
  bool busy_ = false;               ///< a call was read and its answer is not complete
  bool complete_ = false;           ///< the answer is all in `out_`
  bool keep_alive_ = false;
  bool old_client_ = false; ///< HTTP/1.0: no chunks
  bool answering_ = false;  ///< some of the answer was sent
  bool watching_ = false;
  bool says_no_more_ = false; ///< closed its sending side
  bool lingering_ = false;    ///< all is said; waits for the client to hang up
  bool closed_ = false;
};

void http_session::set_busy(bool busy) {
  if (std::exchange(busy_, busy) == busy)
    return;
  if (busy)
    ++shared_->answering;
  else
    --shared_->answering;
}

/// The connection is over; this object may be held a while longer.
void http_session::uncount() {
  set_busy(false);
  --shared_->connections;
}

/// 0: none. When the time is up the connection is closed, whatever it does.
void http_session::set_deadline(std::uint32_t ms) {
  ++deadline_turn_;
  deadline_.cancel();
  if (ms == 0)
    return;
  deadline_.expires_after(milliseconds(ms));
  deadline_.async_wait([self = shared_from_this(), turn = deadline_turn_](error_code ec) {
    if (!ec && turn == self->deadline_turn_)
      self->close();
  });
}

void http_session::close() {
  if (std::exchange(closed_, true))
    return;
  error_code ignored;
  socket_.close(ignored);
  deadline_.cancel();
  uncount();
  if (auto gone = std::exchange(client_gone_, nullptr))
    gone();
}

void http_session::read_call() {
  const auto& settings = shared_->settings;
  parser_.emplace();
  parser_->header_limit(settings.header_bytes_max);
  parser_->body_limit(settings.body_bytes_max);
  set_deadline(settings.read_timeout_ms);
  http::async_read_header(
      socket_, in_, *parser_,
      [self = shared_from_this()](error_code ec, std::size_t) { self->on_header(ec); });
}

void http_session::on_header(error_code ec) {
  if (closed_)
    return;
  if (ec)
    return refuse_call(ec);
  const auto& header = parser_->get();
  old_client_ = header.version() < 11;
  if (boost::beast::iequals(header[http::field::expect], "100-continue"))
    send(go_on);
  http::async_read(
      socket_, in_, *parser_,
      [self = shared_from_this()](error_code read, std::size_t) { self->on_body(read); });
}

void http_session::on_body(error_code ec) {
  if (closed_)
    return;
  if (ec)
    return refuse_call(ec);
  dispatch();
}

void http_session::dispatch() {
  set_deadline(0);
  auto message = parser_->release();
  parser_.reset();
  keep_alive_ = message.keep_alive();
  http_call call;
  call.method = std::string(message.method_string());
  call.target = std::string(message.target());
  call.authorization = std::string(message[http::field::authorization]);
  call.body = std::move(message.body());
  set_busy(true);
  complete_ = false;
  answering_ = false;
  shared_->target->handle(call, shared_from_this());
  if (!closed_)
    watch();
}

/// What can't be read is answered if anyone may be listening, and the connection ends.
void http_session::refuse_call(error_code ec) {
  if (ec == http::error::end_of_stream || ec == asio::error::operation_aborted ||
      ec.category() == asio::error::get_system_category() || ec == asio::error::eof ||
      ec == http::error::partial_message)
    return close();
  api_error x{400, "this is not HTTP as it should be: " + ec.message(), "", "", 0};
  if (ec == http::error::header_limit)
    x = {431,
         "the headers have more than " + std::to_string(shared_->settings.header_bytes_max) +
             " bytes",
         "", "", 0};
  else if (ec == http::error::body_limit)
    x = {413,
         "the body has more than " + std::to_string(shared_->settings.body_bytes_max) + " bytes",
         "", "", 0};
  shared_->target->note_reply(x.status);
  keep_alive_ = false;
  set_busy(true);
  reply({x.status, "application/json", error_body(x), x.retry_after_s});
}

void http_session::refuse() {
  keep_alive_ = false;
  set_busy(true);
  const api_error x{503, "too many connections", "", "too_many_connections", 1};
  shared_->target->note_reply(x.status);
  reply({x.status, "application/json", error_body(x), x.retry_after_s});
}

std::string http_session::head(unsigned status, const std::string& content_type) {
  answering_ = true;
  const auto reason = http::obsolete_reason(static_cast<http::status>(status));
  return fmt::format("HTTP/1.1 {} {}\r\nContent-Type: {}\r\nServer: tokenrouter\r\n{}", status,
                     std::string_view(reason.data(), reason.size()), content_type,
                     keep_alive_ ? "" : "Connection: close\r\n");
}

void http_session::reply(http_reply x) {
  if (closed_)
    return;
  keep_alive_ = keep_alive_ && !shared_->closing;
  std::string bytes = head(x.status, x.content_type);
  if (x.retry_after_s > 0)
    bytes += fmt::format("Retry-After: {}\r\n", x.retry_after_s);
  if (old_client_ && keep_alive_)
    bytes += "Connection: keep-alive\r\n";
  bytes += fmt::format("Content-Length: {}\r\n\r\n", x.body.size());
  client_gone_ = nullptr;
  complete_ = true;
  send(bytes + x.body);
}

void http_session::begin_stream() {
  if (closed_)
    return;
  keep_alive_ = keep_alive_ && !shared_->closing && !old_client_;
  send(head(200, "text/event-stream; charset=utf-8") + "Cache-Control: no-cache\r\n" +
       (old_client_ ? "" : "Transfer-Encoding: chunked\r\n") + "\r\n");
}

void http_session::write_piece(std::string piece) {
  if (closed_ || piece.empty())
    return;
  send(old_client_ ? std::move(piece) : fmt::format("{:x}\r\n{}\r\n", piece.size(), piece));
}

void http_session::end_stream() {
  if (closed_)
    return;
  client_gone_ = nullptr;
  complete_ = true;
  send(old_client_ ? "" : "0\r\n\r\n");
}

void http_session::on_client_gone(std::function<void()> what) {
  if (!closed_ && !complete_)
    client_gone_ = std::move(what);
  else if (closed_)
    what();
}

void http_session::post(std::function<void()> what) {
  asio::post(socket_.get_executor(),
             [self = shared_from_this(), what = std::move(what)] { what(); });
}

void http_session::after_ms(unsigned ms, std::function<void()> what) {
  auto timer = std::make_shared<asio::steady_timer>(socket_.get_executor(), milliseconds(ms));
  timer->async_wait([self = shared_from_this(), timer, what = std::move(what)](error_code ec) {
    if (!ec)
      what();
  });
}

void http_session::send(std::string bytes) {
  out_ += bytes;
  if (sending_.empty())
    send_some();
}

void http_session::send_some() {
  if (sent_bytes_ == sending_.size()) {
    sending_.clear();
    sent_bytes_ = 0;
    std::swap(sending_, out_);
    if (sending_.empty()) {
      if (busy_)
        set_deadline(0);
      if (complete_)
        answer_done();
      return;
    }
  }
  if (busy_)
    set_deadline(shared_->settings.write_timeout_ms);
  socket_.async_write_some(
      asio::buffer(sending_.data() + sent_bytes_, sending_.size() - sent_bytes_),
      [self = shared_from_this()](error_code ec, std::size_t bytes) { self->on_sent(ec, bytes); });
}

void http_session::on_sent(error_code ec, std::size_t bytes) {
  if (closed_)
    return;
  if (ec)
    return close();
  sent_bytes_ += bytes;
  send_some();
}

/// Reads on while a call is answered, to notice the end of the connection.
void http_session::watch() {
  if (watching_ || says_no_more_ || in_.size() >= read_ahead_bytes_max)
    return;
  watching_ = true;
  socket_.async_read_some(
      in_.prepare(4096),
      [self = shared_from_this()](error_code ec, std::size_t bytes) { self->on_watch(ec, bytes); });
}

void http_session::on_watch(error_code ec, std::size_t bytes) {
  watching_ = false;
  if (closed_)
    return;
  in_.commit(bytes);
  if (ec == asio::error::eof && busy_)
    return on_half_close();
  if (ec && ec != asio::error::operation_aborted)
    return close();
  if (lingering_)
    in_.consume(in_.size());
  if (busy_ || lingering_)
    watch();
  else
    read_call();
}

/// The client has closed its sending side: it is gone, or waits for its answers and has no further
/// calls. Only what is sent to it can tell, as one who is gone refuses it.
void http_session::on_half_close() {
  says_no_more_ = true;
  socket_.async_wait(asio::ip::tcp::socket::wait_error, [self = shared_from_this()](error_code ec) {
    if (!ec)
      self->close();
  });
  if (!answering_ && !old_client_)
    send(go_on);
}

/// Everything is with the client.
void http_session::answer_done() {
  complete_ = false;
  set_busy(false);
  if (!keep_alive_)
    return linger();
  if (!watching_)
    return read_call();
  if (in_.size() > 0) {
    error_code ignored;
    socket_.cancel(ignored); // the next call is here already: on_watch goes on with it
    return;
  }
  set_deadline(shared_->settings.idle_timeout_ms);
}

/// Closing with bytes unread would make the kernel take back what the client has not read yet.
void http_session::linger() {
  if (says_no_more_)
    return close();
  error_code ignored;
  socket_.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  lingering_ = true;
  in_.consume(in_.size());
  set_deadline(linger_ms);
  watch();
}

} // namespace

void serve_connection(asio::ip::tcp::socket socket, std::shared_ptr<http_shared> shared,
                      bool refuse) {
  auto session = std::make_shared<http_session>(std::move(socket), std::move(shared));
  if (refuse)
    session->refuse();
  else
    session->run();
}

} // namespace tokenrouter
