/**
 * Does the same with each item as they come, a limited number at once; the results are in the order of the
 * items.
 */
export async function inParallel<Item, Result>(
  items: Iterable<Item>,
  concurrency: number,
  work: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  const waiting = items[Symbol.iterator]();
  let next = 0;
  await Promise.all(
    Array.from({ length: concurrency }, async () => {
      for (;;) {
        const { done, value } = waiting.next();
        if (done === true) return;
        const own = next++;
        results[own] = await work(value);
      }
    }),
  );
  return results;
}
