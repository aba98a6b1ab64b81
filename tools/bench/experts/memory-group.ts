import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';

/** Files of control groups, of version 2 and of version 1. */
const VERSIONS = [
  { root: '/sys/fs/cgroup', has: 'cgroup.controllers', limit: 'memory.max', peak: 'memory.peak' },
  {
    root: '/sys/fs/cgroup/memory',
    has: 'memory.limit_in_bytes',
    limit: 'memory.limit_in_bytes',
    peak: 'memory.max_usage_in_bytes',
  },
] as const;

/** A control group with a limit of memory, which counts its pages of files too. */
export class MemoryGroup {
  readonly #folder: string;
  readonly #peakFile: string;

  /** @throws where this process may make none, and says so */
  constructor(limitBytes: number) {
    const version = VERSIONS.find(({ root, has }) => existsSync(join(root, has)));
    if (version === undefined) throw new Error('This machine has no control groups for memory.');
    this.#folder = join(version.root, `skein-experts-${process.pid}`);
    this.#peakFile = version.peak;
    try {
      mkdirSync(this.#folder);
      writeFileSync(join(this.#folder, version.limit), String(limitBytes));
    } catch (error) {
      throw new Error(
        `No control group with a limit of memory can be made in ${version.root}: run this as root, where it is writable.`,
        { cause: error },
      );
    }
  }

  /** A command of a shell that enters the group, for what follows it. */
  get entry(): string {
    return `echo $$ > ${join(this.#folder, 'cgroup.procs')} && `;
  }

  /** Most bytes that were held at a time. */
  peakBytes(): number {
    return Number(readFileSync(join(this.#folder, this.#peakFile), 'utf8'));
  }

  /** Ends the group, whose processes have ended. */
  async remove(): Promise<void> {
    for (let attempt = 0; ; attempt++) {
      try {
        return rmdirSync(this.#folder);
      } catch (error) {
        if (attempt === 50) throw error;
        await setTimeout(100);
      }
    }
  }
}
