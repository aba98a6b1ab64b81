import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A span as OTLP has it in JSON, with its attributes as an object and its times in milliseconds. */
export interface CollectedSpan {
  traceId: string;
  spanId: string;
  /** '': it has none. */
  parentSpanId: string;
  traceState: string;
  name: string;
  kind: number;
  startMs: number;
  endMs: number;
  /** 2: it failed. */
  status: number;
  message: string;
  attributes: Record<string, unknown>;
  events: string[];
  links: string[];
}

type Value = Record<string, unknown> & { arrayValue?: { values: Value[] } };

/** A receiver of OTLP over HTTP in JSON, as a collector has it. */
export class TraceCollector {
  readonly spans: CollectedSpan[] = [];
  readonly resources: Record<string, unknown>[] = [];
  readonly headers: IncomingMessage['headers'][] = [];
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
  }

  static async listen(): Promise<TraceCollector> {
    const server = createServer((request, response) => {
      const parts: Buffer[] = [];
      request.on('data', (part: Buffer) => parts.push(part));
      request.on('end', () => {
        if (request.url === '/v1/traces')
          collector.#take(request, JSON.parse(Buffer.concat(parts).toString()));
        response.writeHead(request.url === '/v1/traces' ? 200 : 404, { 'content-type': 'application/json' });
        response.end('{}');
      });
    });
    const collector = new TraceCollector(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return collector;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Spans of a trace, in the order of their beginnings. */
  trace(traceId: string): CollectedSpan[] {
    return this.spans.filter((span) => span.traceId === traceId).sort((a, b) => a.startMs - b.startMs);
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  // biome-ignore lint/suspicious/noExplicitAny: the shape of OTLP's messages
  #take(request: IncomingMessage, body: any): void {
    this.headers.push(request.headers);
    for (const { resource, scopeSpans } of body.resourceSpans) {
      this.resources.push(objectOf(resource.attributes));
      for (const span of scopeSpans.flatMap((scope: { spans: unknown[] }) => scope.spans)) {
        this.spans.push({
          ...span,
          parentSpanId: span.parentSpanId ?? '',
          traceState: span.traceState ?? '',
          startMs: Number(span.startTimeUnixNano) / 1e6,
          endMs: Number(span.endTimeUnixNano) / 1e6,
          status: span.status.code ?? 0,
          message: span.status.message ?? '',
          attributes: objectOf(span.attributes),
          events: (span.events ?? []).map(({ name }: { name: string }) => name),
          links: (span.links ?? []).map(({ spanId }: { spanId: string }) => spanId),
        });
      }
    }
  }
}

function objectOf(attributes: { key: string; value: Value }[]): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, plainOf(value)]));
}

function plainOf(value: Value): unknown {
  return value.arrayValue === undefined ? Object.values(value)[0] : value.arrayValue.values.map(plainOf);
}
