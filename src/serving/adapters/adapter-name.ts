import { shown } from '../../../base/option-values.js';
import { AdapterError } from './adapter-error.js';

/** Most characters of the name of an adapter. */
export const LONGEST_ADAPTER_NAME = 200;

/** What a name of an adapter is, for errors. */
export const ADAPTER_NAME = `a text of 1 to ${LONGEST_ADAPTER_NAME} characters that can be seen, without a comma,`;

/** A name goes into lists of names, logs and labels of metrics: as it is, and in one line. */
export function isAdapterName(name: unknown): boolean {
  return (
    typeof name === 'string' &&
    name.length <= LONGEST_ADAPTER_NAME &&
    /^[^\p{C}\p{Z},]([^\p{C},]*[^\p{C}\p{Z},])?$/u.test(name)
  );
}

/** @throws AdapterError for what can be no name of an adapter */
export function checkAdapterName(name: unknown): asserts name is string {
  if (isAdapterName(name)) return;
  throw new AdapterError(`${shown(name)} can be no name of an adapter; ${ADAPTER_NAME} is expected.`, 'name');
}
