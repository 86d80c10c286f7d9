#ifndef LOCKSTEP_SERVER_SYNC_WORKERS_FLAT_SET_H_
#define LOCKSTEP_SERVER_SYNC_WORKERS_FLAT_SET_H_

#include <algorithm>
#include <cstddef>
#include <vector>

namespace lockstep {

// An ordered set of small values in one contiguous piece of memory. The memory is kept when the set shrinks, so that a
// set that changes with every frame does not allocate. Each change moves all later elements, so use it for a few
// thousand elements at most. Pure; not thread-safe.
template <typename T>
class FlatSet {
 public:
  using value_type = T;
  using const_iterator = typename std::vector<T>::const_iterator;
  using iterator = const_iterator;

  void insert(const T& element) {
    const auto it = Find(element);
    if (it == elements_.end() || *it != element) elements_.insert(it, element);
  }
  void erase(const T& element) {
    const auto it = Find(element);
    if (it != elements_.end() && *it == element) elements_.erase(it);
  }
  // Inserts the element if `in`, otherwise erases it.
  void Set(const T& element, bool in) { in ? insert(element) : erase(element); }
  void clear() { elements_.clear(); }

  bool contains(const T& element) const {
    const auto it = Find(element);
    return it != elements_.end() && *it == element;
  }
  bool empty() const { return elements_.empty(); }
  size_t size() const { return elements_.size(); }
  // Iterators in ascending order.
  const_iterator begin() const { return elements_.begin(); }
  const_iterator end() const { return elements_.end(); }
  const T& front() const { return elements_.front(); }

 private:
  // Returns the position of the element, or the position at which to insert it.
  const_iterator Find(const T& element) const {
    // Most elements are added at the end.
    if (elements_.empty() || elements_.back() < element) return elements_.end();
    return std::lower_bound(elements_.begin(), elements_.end(), element);
  }

  std::vector<T> elements_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_SYNC_WORKERS_FLAT_SET_H_
