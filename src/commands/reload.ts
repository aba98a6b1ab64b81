import { messageOf } from '../../base/error-text.js';
import type { LogOutput } from '../server/logs/log-output.js';
import type { Certificate } from '../server/sockets/http-socket.js';
import type { ApiKeys } from '../server/web/access/api-keys.js';
import type { ServerLog } from '../server/web/server-log.js';
import type { Config } from '../settings/config.js';
import { readKeys, readTls } from './server-security.js';

export interface Reloaded {
  config: Config;
  output: LogOutput;
  log: ServerLog;
  apiKeys: ApiKeys;
  /** What listens with the certificate. */
  servers: readonly { certify(tls: Certificate): void }[];
}

/**
 * Opens the log's file again, which may have been renamed, and reads keys and certificates again. What is wrong with a file is logged, and
 * what was in force before stays so. Running requests go on, also those of keys that are gone.
 */
export function reload({ config, output, log, apiKeys, servers }: Reloaded): void {
  output.reopen();
  const attempt = (what: string, read: () => void) => {
    try {
      read();
      log.info({}, `${what} read again`);
    } catch (error) {
      log.error({ reason: messageOf(error) }, `${what} not changed`);
    }
  };
  if (config.apiKeyFile !== undefined) attempt('API keys', () => apiKeys.replace(readKeys(config)));
  if (config.tlsCert !== undefined) {
    attempt('certificate', () => {
      const tls = readTls(config)!;
      for (const server of servers) server.certify(tls);
    });
  }
}
