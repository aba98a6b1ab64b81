import { memoryProblem } from '../base/address-space.js';

/** The HTTP parser of fetch, as stacks of errors name it. */
const FETCH_PARSER = /\blazyllhttp\b/;

/**
 * Says in a sentence what memory a process could not have, where nobody waits for the answer, and ends it with exit code 1.
 *
 * Node.js makes a parser in WebAssembly as soon as anything of fetch is named, Request and Response included, and ends the
 * process where the 10 GB of addresses that it reserves cannot be had. A server does without: only a fetch fails, and says why.
 */
export function watchMemory(): void {
  process.on('unhandledRejection', (reason) => {
    if (memoryProblem(reason) !== null && FETCH_PARSER.test((reason as Error).stack ?? '')) return;
    // The process ends as if nobody listened here.
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
