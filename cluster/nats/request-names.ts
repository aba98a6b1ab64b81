import type { WorkItem } from './messages.js';

/** A request by the names that it has in logs and traces: the client's, which all its lines have, and its gateway's. */
export interface RequestNames {
  /** Absent: its client gave none, and no server has made one. */
  requestId?: string;
  request: string;
}

/** Characters of a client's id: gateways take no longer ones, and other senders are not believed. */
const MAX_ID = 128;

export function requestNames(id: string, label: unknown): RequestNames {
  if (typeof label !== 'string' || label === '') return { request: id };
  return { requestId: label.slice(0, MAX_ID), request: id };
}

export function namesOfItem({ id, request }: Pick<WorkItem, 'id' | 'request'>): RequestNames {
  return requestNames(id, request.label);
}
