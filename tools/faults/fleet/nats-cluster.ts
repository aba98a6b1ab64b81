import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePorts } from '../../support/free-port.js';
import { ProgramMember } from './program-member.js';

/** One nats-server with JetStream, or three that have one store together. */
export class NatsCluster {
  readonly servers: readonly ProgramMember[];
  readonly ports: readonly number[];
  readonly #folder: string;
  /** Stores that were removed. */
  numErasures = 0;

  private constructor(servers: readonly ProgramMember[], ports: readonly number[], folder: string) {
    this.servers = servers;
    this.ports = ports;
    this.#folder = folder;
  }

  /** @param count 1 or 3 */
  static async start(program: string, count: number): Promise<NatsCluster> {
    const folder = mkdtempSync(join(tmpdir(), 'skein-nats-'));
    const ports = await freePorts(3 * count);
    const [clients, routes, monitors] = [0, 1, 2].map((part) =>
      ports.slice(part * count, (part + 1) * count),
    );
    const servers = clients!.map((port, index): ProgramMember => {
      const store = join(folder, String(index));
      const name = `nats-${index}`;
      const args = [
        ...['-js', '-sd', store, '-a', '127.0.0.1', '-p', String(port), '-m', String(monitors![index])],
        // Clients know only the wires, and do not receive the servers' own addresses.
        ...(count === 1
          ? []
          : [
              ...['-n', name, '--cluster_name', 'faults', '--no_advertise'],
              ...['--cluster', `nats://127.0.0.1:${routes![index]}`],
              ...['--routes', routes!.map((route) => `nats://127.0.0.1:${route}`).join(',')],
            ]),
      ];
      const ready = `http://127.0.0.1:${monitors![index]}/healthz`;
      return new ProgramMember({
        name,
        role: 'nats',
        start: async () => ({ command: program, args, environment: process.env, ready }),
        erase: () => {
          cluster.numErasures += 1;
          rmSync(store, { recursive: true, force: true });
        },
      });
    });
    const cluster = new NatsCluster(servers, clients!, folder);
    await Promise.all(servers.map((server) => server.start()));
    return cluster;
  }

  async close(): Promise<void> {
    await Promise.all(this.servers.map((server) => server.end('SIGKILL')));
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
