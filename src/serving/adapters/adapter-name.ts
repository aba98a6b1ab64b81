/** Most characters of the name of an adapter. */
export const LONGEST_ADAPTER_NAME = 200;

/** A name goes into lists of names, logs and labels of metrics: as it is, and in one line. */
export function isAdapterName(name: unknown): boolean {
  return (
    typeof name === 'string' &&
    name.length <= LONGEST_ADAPTER_NAME &&
    /^[^\p{C}\p{Z},]([^\p{C},]*[^\p{C}\p{Z},])?$/u.test(name)
  );
}
