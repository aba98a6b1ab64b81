import { memoryProblem } from '../base/address-space.js';

/** Pattern of fetch's HTTP parser in the stacks of errors. */
const FETCH_PARSER = /\blazyllhttp\b/;

/**
 * Ends a process that was refused memory where nobody waits for the result: prints a sentence and exits with code 1.
 *
 * Node.js makes a parser in WebAssembly as soon as code names any part of fetch, Request and Response included, and
 * ends the process if it cannot have the 10 GB of addresses that the parser reserves. A server can do without: here
 * only fetch itself fails, with a reason.
 */
export function watchMemory(): void {
  process.on('unhandledRejection', (reason) => {
    if (memoryProblem(reason) !== null && FETCH_PARSER.test((reason as Error).stack ?? '')) return;
    // Other errors end the process as without this listener.
    throw reason;
  });
  process.on('uncaughtException', (error) => {
    const problem = memoryProblem(error);
    const text = problem ?? (error instanceof Error ? (error.stack ?? error.message) : String(error));
    process.stderr.write(
      problem === null ? `${text}\n\nNode.js ${process.version}\n` : `skein: ${problem}\n`,
    );
    process.exit(1);
  });
}
