/** The part of npm's `zeromq` (6) that is used here. The package is optional, so nothing imports its types. */
export interface ZeroMq {
  Context: new (options?: { ioThreads?: number }) => unknown;
  Publisher: new (options: SocketOptions) => SendingSocket;
  Router: new (options: SocketOptions & { mandatory?: boolean }) => SendingSocket & ReceivingSocket;
  Reply: new (options: SocketOptions) => SendingSocket & ReceivingSocket;
}

export interface SocketOptions extends CurveOptions {
  context: unknown;
  /** Milliseconds that a closed socket may still send. */
  linger: number;
  /** Messages that wait for one peer. */
  sendHighWaterMark?: number;
  receiveHighWaterMark?: number;
  sendTimeout?: number;
  /** Bytes of a message; a client that sends more is disconnected. */
  maxMessageSize?: number;
  ipv6?: boolean;
}

/** Keys in Z85, 40 characters each. */
export interface CurveOptions {
  curveServer?: boolean;
  curveServerKey?: string;
  curvePublicKey?: string;
  curveSecretKey?: string;
}

interface Socket {
  /** Address that was bound last, with its port. */
  readonly lastEndpoint: string | null;
  bind(address: string): Promise<void>;
  connect(address: string): void;
  close(): void;
}

export interface SendingSocket extends Socket {
  /** One call at a time. */
  send(frames: readonly (Uint8Array | string)[]): Promise<void>;
}

export interface ReceivingSocket extends Socket {
  [Symbol.asyncIterator](): AsyncIterator<Uint8Array[]>;
}
