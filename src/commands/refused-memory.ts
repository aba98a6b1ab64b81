import { addressSpace, memoryProblem } from '../../base/address-space.js';

/** Pattern of fetch's HTTP parser in the stacks of errors. */
const FETCH_PARSER = /\blazyllhttp\b/;
/** The same where it is that of Node.js itself, and not of a package. */
const OWN_FETCH_PARSER = /\blazyllhttp \(node:/;
/** Bytes of addresses that the parser reserves. */
const PARSER_BYTES = 10.8e9;
/** Bytes of addresses that threads of a server may need: five of them. */
const THREADS_BYTES = 4e9;

/**
 * Ends a process that was refused memory where the result is not awaited: prints a sentence and exits with
 * code 1.
 *
 * Node.js makes a parser in WebAssembly as soon as code names any part of fetch, Request and Response included, and
 * ends the process if it cannot have the 10 GB of addresses that the parser reserves. A server can do without: here
 * only fetch itself fails, with a reason.
 */
export function watchMemory(): void {
  keepAddressesForThreads();
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

/** The used part of the global WebAssembly, whose types come with those of browsers. */
interface Instantiating {
  instantiate(...args: unknown[]): Promise<unknown>;
}

/**
 * Refuses the parser its addresses where hardly any would be left, as the system does under a lower limit: a server that
 * never calls fetch would otherwise have none for its threads under a limit of 12 GB, and start under one of 10 GB.
 */
function keepAddressesForThreads(): void {
  if (addressSpace() === null) return;
  const { WebAssembly } = globalThis as unknown as { WebAssembly: Instantiating };
  const { instantiate } = WebAssembly;
  WebAssembly.instantiate = async (...args) => {
    const space = addressSpace();
    const isScarce = space !== null && space.limit - space.used < PARSER_BYTES + THREADS_BYTES;
    if (isScarce && OWN_FETCH_PARSER.test(new Error().stack ?? '')) {
      throw new RangeError('WebAssembly.instantiate(): Out of memory: the addresses are kept for threads');
    }
    return instantiate.apply(WebAssembly, args);
  };
}
