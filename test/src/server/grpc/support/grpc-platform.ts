import { onTestFinished } from 'vitest';
import { GrpcServer, type GrpcServerOptions } from '../../../../../src/server/grpc/grpc-server.js';
import type { ServerMetrics } from '../../../../../src/server/metrics/families/server-metrics.js';
import { ApiKeys } from '../../../../../src/server/web/access/api-keys.js';
import { MemoryLedger } from '../../../../../src/server/web/memory/held-memory.js';
import type { LogControl, LogLevels } from '../../../../../src/server/web/server-log.js';
import type { ServerState } from '../../../../../src/server/web/server-state.js';
import type { ModelRepository } from '../../../../../src/serving/model-repository.js';
import { GrpcClient, type GrpcClientOptions } from '../../../../../tools/support/grpc-client.js';
import { type FakeModel, FakeRepository } from '../../kserve/support/fake-models.js';
import { fakePlatform } from '../../kserve/support/fake-platform.js';

/** A line of a log, with its level. */
export type LogLine = Record<string, unknown> & { level: string; message: string };

export interface GrpcPlatform {
  server: GrpcServer;
  /** host:port */
  address: string;
  client: GrpcClient;
  repository: FakeRepository;
  state: ServerState;
  metrics: ServerMetrics;
  ledger: MemoryLedger;
  log: LogLine[];
  accessLog: LogLine[];
  /** Another client of the same server. */
  connect(options?: GrpcClientOptions): GrpcClient;
}

export interface PlatformOptions
  extends Partial<Omit<GrpcServerOptions, 'platform' | 'state' | 'metrics' | 'log' | 'accessLog'>> {
  allowsUpload?: boolean;
  sharedMemory?: GrpcServerOptions['platform']['sharedMemory'];
  repository?: ModelRepository;
  client?: GrpcClientOptions;
}

/** The gRPC side on a socket, over models that compute at once; it is closed when the test is over. */
export async function grpcPlatform(
  models: readonly FakeModel[],
  { allowsUpload = false, sharedMemory = null, client: ofClient = {}, ...given }: PlatformOptions = {},
): Promise<GrpcPlatform> {
  const { state, metrics } = fakePlatform([]);
  const repository = new FakeRepository(models);
  const { ledger = new MemoryLedger({ limit: 2 ** 30 }) } = given;
  const log: LogLine[] = [];
  const accessLog: LogLine[] = [];
  const server = await GrpcServer.listen({
    apiKeys: new ApiKeys([]),
    logControl: new FakeLogControl(),
    tracing: null,
    allowedHosts: '*',
    version: '1.2.3',
    maxBodyBytes: 2 ** 20,
    requestTimeoutMs: null,
    stallLimitMs: 60_000,
    host: '127.0.0.1',
    port: 0,
    maxConnections: 100,
    maxStreams: 1000,
    ...given,
    state,
    metrics,
    ledger,
    log: noting(log),
    accessLog: noting(accessLog),
    platform: { repository: given.repository ?? repository, serverId: 'skein', allowsUpload, sharedMemory },
  });
  const address = `127.0.0.1:${server.port}`;
  const clients: GrpcClient[] = [];
  const connect = (options: GrpcClientOptions = {}) => {
    const client = new GrpcClient(address, { ...ofClient, ...options });
    clients.push(client);
    return client;
  };
  onTestFinished(async () => {
    for (const client of clients) client.close();
    await server.close(0);
  });
  return { server, address, client: connect(), repository, state, metrics, ledger, log, accessLog, connect };
}

/** What is logged, of a log that writes nothing. */
class FakeLogControl implements LogControl {
  levels: LogLevels = { log_info: true, log_warning: true, log_error: true, log_verbose_level: 0 };
  readonly path = '';
  readonly format = 'json';

  change(levels: Partial<LogLevels>): void {
    this.levels = { ...this.levels, ...levels };
  }
}

function noting(lines: LogLine[]) {
  const at = (level: string) => (fields: object, message: string) => {
    lines.push({ ...fields, level, message });
  };
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}

/** The answer of a call that is well. */
export async function answered(call: ReturnType<GrpcClient['call']>): Promise<Record<string, unknown>> {
  const result = await call;
  if ('answer' in result) return result.answer;
  throw new Error(`${result.code}: ${result.message}`);
}
