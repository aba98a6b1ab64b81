import {
  BATCHED_POST_PROCESSOR,
  type LogitsPostProcessor,
  type LogitsPostProcessorBatched,
} from '../../callbacks/logits-post-processor.js';
import type { PostProcessorFunctions } from '../../callbacks/post-processor-call.js';
import type { HostCalls } from './host-calls.js';

const MAP = 'logitsPostProcessors';
const BATCHED = 'logitsPostProcessorBatched';

/** The logits post-processors that requests of a manager can name. */
export class PostProcessors implements PostProcessorFunctions {
  readonly batched: LogitsPostProcessorBatched | null;
  /** Those that run in the host's thread; null: none do. */
  readonly host: HostCalls | null;
  readonly #named: ReadonlyMap<string, LogitsPostProcessor>;

  constructor(
    named: ReadonlyMap<string, LogitsPostProcessor>,
    batched: LogitsPostProcessorBatched | null = null,
    host: HostCalls | null = null,
  ) {
    this.#named = named;
    this.batched = batched;
    this.host = host;
  }

  /** These, and those of the host. @throws an error naming a post-processor that both have */
  with(host: HostCalls): PostProcessors {
    const twice = this.names.find((name) => host.names.includes(name));
    if (twice !== undefined) {
      throw new Error(
        `The logits post-processor ${twice} is both a function given to the manager and one of logitsPostProcessorModule; give one of them another name.`,
      );
    }
    return new PostProcessors(this.#named, this.batched, host);
  }

  get names(): string[] {
    const own = [...this.#named.keys(), ...(this.batched === null ? [] : [BATCHED_POST_PROCESSOR])];
    return [...own, ...(this.host?.names ?? [])];
  }

  get(name: string): LogitsPostProcessor | undefined {
    return this.#named.get(name);
  }
}

/**
 * Collects the post-processors that a module exports. Throws an error naming an export that is none, or if there are
 * none.
 */
export function postProcessorsOf(exports: Record<string, unknown>, url: string): PostProcessors {
  const named = new Map<string, LogitsPostProcessor>();
  const add = (name: string, value: unknown) => {
    if (typeof value !== 'function') {
      throw new Error(
        `The module ${url} registers the logits post-processor ${name} as ${typeof value}; a function is expected.`,
      );
    }
    if (name === BATCHED_POST_PROCESSOR) {
      throw new Error(
        `The module ${url} registers a logits post-processor as ${name}, the name of the batched one; export that as ${BATCHED}.`,
      );
    }
    named.set(name, value as LogitsPostProcessor);
  };
  for (const [name, value] of Object.entries(exports)) {
    if (typeof value === 'function' && name !== BATCHED && name !== 'default') add(name, value);
  }
  const map = exports[MAP];
  if (map !== undefined && (typeof map !== 'object' || map === null)) {
    throw new Error(
      `The module ${url} exports ${MAP} as ${String(map)}; an object of functions is expected.`,
    );
  }
  for (const [name, value] of map instanceof Map ? map : Object.entries(map ?? {})) add(String(name), value);
  const batched = exports[BATCHED];
  if (batched !== undefined && typeof batched !== 'function') {
    throw new Error(`The module ${url} exports ${BATCHED} as ${typeof batched}; a function is expected.`);
  }
  if (named.size === 0 && batched === undefined) {
    throw new Error(
      `The module ${url} exports no logits post-processor: no function, no ${MAP}, no ${BATCHED}.`,
    );
  }
  return new PostProcessors(named, (batched as LogitsPostProcessorBatched | undefined) ?? null);
}
