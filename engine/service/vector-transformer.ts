/**
 * Computes batches for a BatchedService, in a worker of its own. The worker's module exports a class with these methods as its default;
 * it is constructed with the `initArguments` of `BatchedService.start`.
 */
export interface VectorTransformer<Received = unknown, Preprocessed = Received, Transformed = unknown> {
  /** Prepares what the service's `preprocess` has made of a batch. Not given: it goes to `transform` as it is. */
  preprocess?(received: Received): Preprocessed | Promise<Preprocessed>;
  /** Computes a batch at once. */
  transform(preprocessed: Preprocessed): Transformed | Promise<Transformed>;
  /**
   * Makes what the service is sent: something that can be copied to another process, with a result for each element of the
   * batch unless the service's `postprocess` makes one of it. Not given: what `transform` returned.
   */
  postprocess?(preprocessed: Preprocessed, transformed: Transformed): unknown;
}
