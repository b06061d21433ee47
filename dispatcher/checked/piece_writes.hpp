// Which piece of a parallel_for wrote which byte, where the pieces run one after another: two that write the same byte
// are a race, whose outcome is another one in another run.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace backplane::core {

// The bytes of one result. Before each piece those that earlier pieces wrote are complemented, so that writing even the
// same value again is seen; what no piece has written yet stays as it is, so that pieces may add to it.
class PieceWrites {
 public:
  explicit PieceWrites(std::string what) : what_(std::move(what)) {}

  // The bytes that a piece must find, from the current bytes.
  std::vector<unsigned char> before_piece(std::vector<unsigned char> now) {
    writer_.resize(now.size(), kNobody);
    true_ = shown_ = std::move(now);
    for (size_t i = 0; i < shown_.size(); ++i)
      if (writer_[i] != kNobody) shown_[i] = static_cast<unsigned char>(~shown_[i]);
    return shown_;
  }

  // The correct bytes after the piece, from the bytes that it left. A byte that an earlier piece also wrote goes into
  // fault().
  std::vector<unsigned char> after_piece(uint32_t piece, std::vector<unsigned char> left) {
    for (size_t i = 0; i < left.size(); ++i) {
      if (left[i] == shown_[i]) {
        left[i] = true_[i];
        continue;
      }
      if (writer_[i] != kNobody && fault_.empty())
        fault_ = "wrote byte " + std::to_string(i) + " of " + what_ + " in pieces " + std::to_string(writer_[i]) +
                 " and " + std::to_string(piece) +
                 " of its parallel_for, which may run at once; expected each byte to be written by one piece alone";
      writer_[i] = piece;
    }
    return left;
  }

  const std::string& fault() const { return fault_; }  // "": none

 private:
  static constexpr uint32_t kNobody = ~uint32_t{0};
  std::string what_, fault_;
  std::vector<unsigned char> true_, shown_;
  std::vector<uint32_t> writer_;
};

}  // namespace backplane::core
