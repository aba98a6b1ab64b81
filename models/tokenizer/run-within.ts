import { createContext, Script } from 'node:vm';

const script = new Script('work()');

/**
 * Runs work in this thread that may not end by itself, such as an unknown regular expression.
 * @param limitMs milliseconds after which it is broken off @throws Error with code ERR_SCRIPT_EXECUTION_TIMEOUT
 */
export function runWithin<T>(limitMs: number, work: () => T): T {
  return script.runInContext(createContext({ work }), { timeout: limitMs }) as T;
}
