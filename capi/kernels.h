/* Forward and backward passes of common layers, for frameworks whose own arithmetic depends on the processor. Part of
 * liblockstep.so. What lockstep.h says about results, threads, processors and versions applies here too.
 *
 * Bits. A result depends only on the arguments. It has the same bits on every processor, with every instruction set
 * that the library supports (AVX2, AVX-512, NEON; LOCKSTEP_TARGET selects one), on any thread, at any alignment.
 * Releases with the same lockstep_kernels_version() produce the same bits. A worker that computes with these kernels
 * must include that number in the settings of its framework, so that workers with a different number are refused.
 *
 * Arrays. Row-major float32 without gaps, in the caller's memory. An output must not overlap another array unless its
 * comment allows it. The first dimension of an array may be 0, the others are at least 1, and an array has at most 2^40
 * elements. Outputs that are null are not computed.
 *
 * Errors. LOCKSTEP_INVALID_ARGUMENT names the argument. LOCKSTEP_FAILED_PRECONDITION means that LOCKSTEP_TARGET in the
 * environment is wrong. After an error, outputs are undefined. The caller is responsible for the memory behind pointers
 * and its size.
 *
 * Threads. A call computes only on the calling thread. Calls may run concurrently. */
#ifndef LOCKSTEP_CAPI_KERNELS_H_
#define LOCKSTEP_CAPI_KERNELS_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the version of the kernels' bits, which is the layers version in `lockstep --version`. */
int lockstep_kernels_version(void);

/* y [rows, outputs] = x [rows, inputs] weight^T + bias, for weight [outputs, inputs]. bias [outputs] may be null. */
int lockstep_linear(int64_t rows, int64_t inputs, int64_t outputs, const float* x, const float* weight,
                    const float* bias, float* y);
/* The gradients for dy [rows, outputs]. dx, dweight and dbias may be null. */
int lockstep_linear_gradient(int64_t rows, int64_t inputs, int64_t outputs, const float* x, const float* weight,
                             const float* dy, float* dx, float* dweight, float* dbias);

typedef enum lockstep_activation {
  LOCKSTEP_RELU = 1,
  LOCKSTEP_RELU6 = 2,
  LOCKSTEP_LEAKY_RELU = 3, /* the only one that reads `slope`, in [0, 1] */
  LOCKSTEP_TANH = 4,
  LOCKSTEP_SIGMOID = 5,
  LOCKSTEP_GELU = 6 /* x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2 */
} lockstep_activation;

/* y[i] = f(x[i]); y may be x. */
int lockstep_activate(int activation, float slope, int64_t size, const float* x, float* y);
/* dx[i] = dy[i] f'(x[i]). `value` is x for GELU, otherwise y. dx may be dy. */
int lockstep_activation_gradient(int activation, float slope, int64_t size, const float* value, const float* dy,
                                 float* dx);

/* The softmax of each row. y may be x. */
int lockstep_softmax(int64_t rows, int64_t columns, const float* x, float* y);
/* dx = y (dy - the row's sum of dy y). dx may be dy. */
int lockstep_softmax_gradient(int64_t rows, int64_t columns, const float* y, const float* dy, float* dx);

/* The mean and the biased variance of each column. rows must be at least 1. */
int lockstep_column_moments(int64_t rows, int64_t columns, const float* x, float* mean, float* variance);
/* Batch normalization of images with channels last, or of vectors: y = f((x - mean) / sqrt(variance + epsilon) * gamma
 * + beta). gamma and beta [columns] may be null, which means 1 and 0. `activation` is LOCKSTEP_RELU or LOCKSTEP_RELU6,
 * or 0 for none. y may be x. */
int lockstep_batch_norm(int64_t rows, int64_t columns, float epsilon, const float* mean, const float* variance,
                        const float* gamma, const float* beta, int activation, const float* x, float* y);
/* The gradients for dy. If of_batch is not 0, mean and variance are functions of x. Otherwise they are constants. dx,
 * dgamma and dbeta may be null, and dx may be dy. rows must be at least 1. */
int lockstep_batch_norm_gradient(int64_t rows, int64_t columns, float epsilon, int of_batch, const float* mean,
                                 const float* variance, const float* gamma, const float* beta, int activation,
                                 const float* x, const float* dy, float* dx, float* dgamma, float* dbeta);

/* Layer normalization of each row. Writes the rows' means and 1 / sqrt(variance + epsilon) for the gradient. gamma and
 * beta [columns] may be null, which means 1 and 0. */
int lockstep_layer_norm(int64_t rows, int64_t columns, float epsilon, const float* gamma, const float* beta,
                        const float* x, float* means, float* inverses, float* y);
/* dx, dgamma and dbeta may be null, and dx may be dy. */
int lockstep_layer_norm_gradient(int64_t rows, int64_t columns, const float* gamma, const float* means,
                                 const float* inverses, const float* x, const float* dy, float* dx, float* dgamma,
                                 float* dbeta);

/* Row r of dtable [rows, columns] = the sum of the rows of dy [count, columns] whose id is r, in the order of dy. Ids
 * equal to `skipped` add nothing. If `skipped` is -1, none is skipped. */
int lockstep_embedding_gradient(int64_t rows, int64_t columns, int64_t count, const int64_t* ids, int64_t skipped,
                                const float* dy, float* dtable);

/* Keeps element i with probability 1 - rate and divides it by 1 - rate; otherwise y[i] is 0. Random number i of the
 * Philox4x32-10 stream of `key` (docs/wire.md) decides. rate must be in [0, 1]. Writes a bit for each element to
 * `kept`, (size + 7) / 8 bytes. y may be x. */
int lockstep_dropout(uint64_t key, float rate, int64_t size, const float* x, uint8_t* kept, float* y);
/* dx may be dy. */
int lockstep_dropout_gradient(float rate, int64_t size, const uint8_t* kept, const float* dy, float* dx);

/* Losses. `loss` is one number, or the loss of each row or element for LOCKSTEP_EACH. Unless null, dx is the derivative
 * of the loss or, for LOCKSTEP_EACH, of the row's or element's own loss. */
typedef enum lockstep_reduction { LOCKSTEP_EACH = 0, LOCKSTEP_SUM = 1, LOCKSTEP_MEAN = 2 } lockstep_reduction;

/* Cross-entropy of each row's softmax. Either `labels` [rows] are classes in [0, columns), or `targets` [rows, columns]
 * are probabilities. The other one must be null. A row whose label is `ignored` has no loss and does not count in the
 * mean, which is NaN if no row counts. `smoothing`, in [0, 1], is the share of a target that is spread equally over all
 * classes. */
int lockstep_softmax_loss(int64_t rows, int64_t columns, const float* x, const int64_t* labels, const float* targets,
                          int64_t ignored, float smoothing, int reduction, float* loss, float* dx);

typedef enum lockstep_loss {
  LOCKSTEP_SQUARED_ERROR = 1,        /* (x - t)^2 */
  LOCKSTEP_ABSOLUTE_ERROR = 2,       /* |x - t| */
  LOCKSTEP_HUBER = 3,                /* e^2 / 2 where e = |x - t| <= delta, else delta e - delta^2 / 2 */
  LOCKSTEP_SIGMOID_CROSS_ENTROPY = 4 /* max(x, 0) - x t + log(1 + exp(-|x|)) */
} lockstep_loss;
/* Only LOCKSTEP_HUBER reads `delta`, which must be positive. */
int lockstep_elementwise_loss(int loss_kind, float delta, int64_t size, const float* x, const float* targets,
                              int reduction, float* loss, float* dx);

/* Images [count, height, width, channels], and a window that slides over them and the border around them. An output has
 * (top + height + bottom - window_height) / stride_y + 1 rows, rounded down, and columns likewise. */
typedef struct lockstep_images {
  size_t size; /* sizeof(lockstep_images) */
  int64_t count, height, width, channels;
  int64_t window_height, window_width; /* in [1, 2^20], and at most an image with its border */
  int64_t stride_y, stride_x;          /* in [1, 64] */
  int64_t top, bottom, left, right;    /* the border, in [0, 2^20]; for pooling smaller than the window */
} lockstep_images;

/* y [count, rows, columns, filters] = the convolution with kernel [window_height, window_width, channels, filters],
 * plus bias [filters], which may be null. `padded` holds the images with a border of zeros: [count, top + height +
 * bottom, left + width + right, channels]. */
int lockstep_convolution(const lockstep_images* images, int64_t filters, const float* padded, const float* kernel,
                         const float* bias, float* y);
/* The gradients for dy. The images' gradient dx has no border. dx, dkernel and dbias may be null. */
int lockstep_convolution_gradient(const lockstep_images* images, int64_t filters, const float* padded,
                                  const float* kernel, const float* dy, float* dx, float* dkernel, float* dbias);

/* y = the largest element of each window, or NaN if the window has one. Unless null, `winners` has one number for each
 * element of y. */
int lockstep_max_pool(const lockstep_images* images, const float* x, int32_t* winners, float* y);
int lockstep_max_pool_gradient(const lockstep_images* images, const int32_t* winners, const float* dy, float* dx);
/* y = the mean of each window's positions inside the image. */
int lockstep_average_pool(const lockstep_images* images, const float* x, float* y);
int lockstep_average_pool_gradient(const lockstep_images* images, const float* dy, float* dx);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* LOCKSTEP_CAPI_KERNELS_H_ */
