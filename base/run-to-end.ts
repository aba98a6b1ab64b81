/**
 * Work in parts, for threads that others wait for: each `next` does one, and yields its cost, in whatever the work counts. The last
 * one returns the result.
 */
export type InParts<Result> = Generator<number, Result, undefined>;

/** Does all parts at once. */
export function runToEnd<Result>(work: InParts<Result>): Result {
  for (;;) {
    const { done, value } = work.next();
    if (done) return value;
  }
}
