import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Metrics } from '../server/metrics/metrics.js';
import { HttpSocket } from '../server/sockets/http-socket.js';
import { answerAfterBody } from '../server/sockets/late-body.js';
import { type AllowedHosts, hostCheck } from '../server/web/access/host-check.js';
import { ApiError, toApiError } from '../server/web/errors.js';
import { noteAnswer, refuse } from '../server/web/raw-refusals.js';
import type { HealthReport } from './worker-life.js';

export interface HealthPortOptions {
  host: string;
  /** 0 takes a free one. */
  port: number;
  allowedHosts: AllowedHosts;
  report: () => HealthReport;
  /** null: there are none (--no-metrics). */
  metrics: Pick<Metrics, 'contentType' | 'text'> | null;
}

/** Paths of a worker; the last one only where there are metrics. */
export const WORKER_PATHS = ['/live', '/health', '/metrics'] as const;

interface Answer {
  status: number;
  type: string;
  body: string;
}

/**
 * What Kubernetes, Prometheus and people ask a worker, which has no clients of its own: the paths and answers of a server's /live, /health
 * and /metrics. It listens from the start of the process, while the model is loaded, until its end.
 */
export class HealthPort {
  readonly #options: HealthPortOptions;
  readonly #socket: HttpSocket;

  private constructor(options: HealthPortOptions, socket: HttpSocket) {
    this.#options = options;
    this.#socket = socket;
  }

  /** @throws ListenError where the address cannot be listened on */
  static async listen(options: HealthPortOptions): Promise<HealthPort> {
    const checkHost = hostCheck(options.allowedHosts);
    const socket: HttpSocket = await HttpSocket.listen(options, (incoming, outgoing) => {
      noteAnswer(outgoing);
      const refusal = socket.refusalOf(incoming);
      if (refusal !== null) {
        refuse(outgoing, refusal);
        return;
      }
      answerAfterBody(incoming, outgoing);
      void port.#answer(incoming, outgoing, checkHost);
    });
    const port = new HealthPort(options, socket);
    return port;
  }

  get url(): string {
    return this.#socket.url;
  }

  async #answer(
    incoming: IncomingMessage,
    outgoing: ServerResponse,
    checkHost: (host: string | undefined) => void,
  ): Promise<void> {
    let answer: Answer;
    const headers: Record<string, string> = {};
    try {
      checkHost(incoming.headers.host);
      answer = await this.#answerTo(incoming);
    } catch (error) {
      const refusal = toApiError(error);
      Object.assign(headers, refusal.headers);
      answer = json(refusal.status, refusal.body());
    }
    const { status, type, body } = answer;
    outgoing.writeHead(status, {
      'content-type': type,
      'content-length': Buffer.byteLength(body),
      ...headers,
    });
    outgoing.end(incoming.method === 'HEAD' ? undefined : body);
  }

  async #answerTo({ method, url = '' }: IncomingMessage): Promise<Answer> {
    const { report, metrics } = this.#options;
    const path = url.split('?', 1)[0]!;
    const known: readonly string[] = metrics === null ? WORKER_PATHS.slice(0, 2) : WORKER_PATHS;
    if (!known.includes(path)) {
      throw new ApiError(
        404,
        `A worker has no path ${path}: it has ${known.join(', ')}; clients ask its gateways.`,
        {
          code: 'not_found',
        },
      );
    }
    if (method !== 'GET' && method !== 'HEAD') {
      throw new ApiError(405, `${path} takes GET, not ${method}.`, {
        code: 'method_not_allowed',
        headers: { allow: 'GET, HEAD' },
      });
    }
    if (path === '/live') return json(200, { status: 'live' });
    if (path === '/metrics') return { status: 200, type: metrics!.contentType, body: await metrics!.text() };
    const now = report();
    return json(now.status === 'ready' ? 200 : 503, now);
  }

  /** Cuts the connections, and listens no more. */
  close(): Promise<void> {
    return this.#socket.close();
  }
}

function json(status: number, body: object): Answer {
  return { status, type: 'application/json', body: JSON.stringify(body) };
}
