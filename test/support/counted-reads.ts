/** The same numbers, and how many of them have been read by their places. */
export function countedReads(numbers: Int32Array): { numbers: Int32Array; reads(): number } {
  let reads = 0;
  const counted = new Proxy(numbers, {
    get(target, name) {
      if (typeof name === 'string' && /^\d+$/.test(name)) reads++;
      return Reflect.get(target, name, target);
    },
  });
  return { numbers: counted, reads: () => reads };
}
