import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { closestName } from '../../base/did-you-mean.js';
import { messageOf } from '../../base/error-text.js';
import { asClause } from '../../base/sentences.js';
import { InvalidRequestError } from '../errors/request-errors.js';
import { UsageError } from '../errors/user-errors.js';
import type { FunctionTool } from '../generation/tools/types.js';
import { type ReadyTool, readyTools } from '../library/chat/ready-tools.js';

/** Functions of a user's files, each of which can be on or off. */
export class ChatTools {
  readonly ready: ReadonlyMap<string, ReadyTool>;
  readonly #on: Set<string>;

  constructor(ready: ReadonlyMap<string, ReadyTool>) {
    this.ready = ready;
    this.#on = new Set(ready.keys());
  }

  /** Those that are on, as the model sees them. */
  get described(): FunctionTool[] {
    return this.#named().map((name) => this.ready.get(name)!.described);
  }

  /** Those that are on, to be run. */
  get running(): ReadonlyMap<string, ReadyTool> {
    return new Map(this.#named().map((name) => [name, this.ready.get(name)!]));
  }

  /** A line for each. */
  get lines(): string[] {
    if (this.ready.size === 0)
      return ['no functions: skein chat --tools FILE names a module that exports some'];
    const width = Math.max(...Array.from(this.ready.keys(), (name) => name.length));
    return Array.from(this.ready, ([name, { described }]) => {
      const state = this.#on.has(name) ? 'on ' : 'off';
      return `${state}  ${name.padEnd(width)}  ${described.description ?? ''}`.trimEnd();
    });
  }

  /** Turns one on or off, or all with the words `on` and `off`. @throws UsageError */
  turn(name: string): void {
    const names = [...this.ready.keys()];
    if (name === 'on' || name === 'off') {
      for (const one of names) this.#set(one, name === 'on');
    } else if (this.ready.has(name)) this.#set(name, !this.#on.has(name));
    else {
      const meant = closestName(name, names);
      throw new UsageError(
        `There is no function ${name}; ${meant === null ? '/tools lists them.' : `did you mean ${meant}?`}`,
      );
    }
  }

  #set(name: string, isOn: boolean): void {
    if (isOn) this.#on.add(name);
    else this.#on.delete(name);
  }

  #named(): string[] {
    return [...this.ready.keys()].filter((name) => this.#on.has(name));
  }
}

/**
 * Functions that modules export, each under its name: objects with `execute`, and `description`, `input` or `parameters`, as `tool()` makes
 * them. Importing a module runs it.
 * @throws UsageError for what is no module, exports no function, or one of a name that another has
 */
export async function openChatTools(paths: readonly string[]): Promise<ChatTools> {
  const all: Record<string, unknown> = {};
  for (const path of paths) {
    const exported = Object.entries(await imported(path));
    if (exported.length === 0)
      throw new UsageError(
        `--tools ${path} exports nothing; functions are exported by their names, as in export const get_time = { execute: () => new Date() }.`,
      );
    for (const [name, value] of exported) {
      if (name in all) throw new UsageError(`--tools ${path} exports ${name}, which another file does too.`);
      all[name] = value;
    }
  }
  try {
    const ready = readyTools(all);
    for (const [name, { execute }] of ready)
      if (execute === undefined) throw new UsageError(`The function ${name} of --tools has no execute.`);
    return new ChatTools(ready);
  } catch (error) {
    if (!(error instanceof InvalidRequestError)) throw error;
    throw new UsageError(`What --tools exports is not taken: ${error.message}`);
  }
}

async function imported(path: string): Promise<object> {
  try {
    return (await import(pathToFileURL(resolve(path)).href)) as object;
  } catch (error) {
    throw new UsageError(`--tools ${path} cannot be imported: ${asClause(messageOf(error))}.`);
  }
}
