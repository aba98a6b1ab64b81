import { createContext, Script } from 'node:vm';

const script = new Script('work()');

/**
 * Does work in this thread that may not end by itself, such as a regular expression that is not known.
 * @param limitMs after so many milliseconds it is broken off @throws Error with code ERR_SCRIPT_EXECUTION_TIMEOUT
 */
export function runWithin<T>(limitMs: number, work: () => T): T {
  return script.runInContext(createContext({ work }), { timeout: limitMs }) as T;
}
