import { setTimeout as sleep } from 'node:timers/promises';
import { freePort, freePorts } from '../../support/free-port.js';
import { call } from '../client/call.js';
import type { Fleet, Trouble } from './fleet.js';
import { ProgramMember } from './program-member.js';
import type { Router } from './routers.js';
import { type EngineOptions, singleServer } from './skein-program.js';
import { SkewedClock } from './skewed-clock.js';
import { Wire } from './wire.js';

export interface RouterFleetOptions extends EngineOptions {
  router: Router;
  /** Folder of the router's program; empty: that of the PATH. */
  routerFolder: string;
  workers: number;
}

/** Answers in a row after which a router counts as ready: one for each server at least. */
const READY_ANSWERS = 6;
const MAX_READY_MS = 90_000;

/** Servers of Skein with a router of another project in front of them, and a wire between it and each. */
export class RouterFleet implements Fleet {
  readonly members: ProgramMember[] = [];
  readonly numErasures = 0;
  readonly #router: ProgramMember;
  readonly #address: string;

  private constructor(router: ProgramMember, members: readonly ProgramMember[], address: string) {
    this.#router = router;
    this.members.push(...members);
    this.#address = address;
  }

  static async start(options: RouterFleetOptions): Promise<RouterFleet> {
    const members = [];
    for (let i = 0; i < options.workers; i += 1) members.push(await serverOf(`server-${i}`, options));
    const [own, metrics] = (await freePorts(2)) as [number, number];
    const address = `http://127.0.0.1:${own}`;
    const { router, routerFolder } = options;
    const urls = members.map(({ wire }) => `http://127.0.0.1:${wire!.ports[0]}`);
    const program = new ProgramMember({
      name: router.name,
      role: 'gateway',
      start: async () => ({
        command: routerFolder === '' ? router.program : `${routerFolder}/${router.program}`,
        args: router.args({ own, metrics }, urls),
        environment: options.environment,
        ready: `${address}/health`,
      }),
    });
    const fleet = new RouterFleet(program, members, address);
    try {
      await members[0]!.start();
      await Promise.all(members.slice(1).map((member) => member.start()));
      await program.start();
      await fleet.#untilReady();
      return fleet;
    } catch (error) {
      await fleet.close();
      throw error;
    }
  }

  async #untilReady(): Promise<void> {
    const end = performance.now() + MAX_READY_MS;
    const body = { model: 'gosling', prompt: 'Once', max_tokens: 1 };
    for (let inARow = 0; inARow < READY_ANSWERS; ) {
      const { kind } = await call(this.#address, { method: 'POST', path: '/v1/completions', body });
      inARow = kind === 'whole' ? inARow + 1 : 0;
      if (performance.now() > end)
        throw new Error(`${this.#router.name} does not answer: ${this.#router.output.slice(-2_000)}`);
      if (inARow === 0) await sleep(200);
    }
  }

  addresses(): readonly string[] {
    return [this.#address];
  }

  /**
   * A router may lose the requests of a server that is lost, and may find no server for others until it has
   * noticed.
   */
  excuse({ kind, status }: Trouble): string | null {
    if (kind === 'broken') return 'its connection ended';
    return status !== null && status >= 500 ? `${status} of the router` : null;
  }

  async leftovers(): Promise<string[]> {
    return [];
  }

  async close(): Promise<void> {
    await Promise.all([this.#router, ...this.members].map((member) => member.end('SIGKILL')));
    for (const { wire, clock } of this.members) {
      wire?.close();
      clock?.close();
    }
  }
}

async function serverOf(name: string, options: RouterFleetOptions): Promise<ProgramMember> {
  const wire = await Wire.open([0]);
  const start = async () => {
    const port = await freePort();
    wire.retarget([port]);
    return singleServer(port, options);
  };
  return new ProgramMember({ name, role: 'worker', wire, speaks: 'down', clock: new SkewedClock(), start });
}
