import type { NatsConnection } from '@nats-io/transport-node';

/** What a test answers in place of the NATS server; null: the server does. */
export type Answer = (subject: string) => object | Error | null;

/**
 * A connection that belongs to a server of a cluster, of which a test answers what it wants.
 * @param answer called with the subject of each request of JetStream's API, after `$JS.API.` @param drops
 * true: a message that waits for no answer is lost
 */
export function answeredConnection(
  nc: NatsConnection,
  answer: Answer,
  drops: (subject: string) => boolean = () => false,
): NatsConnection {
  const request: NatsConnection['request'] = async (subject, ...rest) => {
    const own = subject.startsWith(API) ? answer(subject.slice(API.length)) : null;
    if (own instanceof Error) throw own;
    if (own === null) return nc.request(subject, ...rest);
    return { data: Buffer.from(JSON.stringify(own)) } as unknown as Awaited<ReturnType<typeof nc.request>>;
  };
  const publish: NatsConnection['publish'] = (subject, ...rest) => {
    if (!subject.startsWith(API) || !drops(subject.slice(API.length))) nc.publish(subject, ...rest);
  };
  return Object.create(nc, {
    request: { value: request },
    publish: { value: publish },
    info: { get: () => ({ ...nc.info, cluster: 'test' }) },
  }) as NatsConnection;
}

const API = '$JS.API.';

/** What a server says that knows of no such message. */
export const NO_MESSAGE = { error: { code: 404, err_code: 10037, description: 'no message found' } };
