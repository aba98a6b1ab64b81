import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

type Block = ReturnType<typeof ipaddr.parseCIDR>;
const block = (text: string): Block => ipaddr.parseCIDR(text);

/** All that IPv6 gives out to networks of the Internet; the others are local, or carry addresses of IPv4. */
const GLOBAL_UNICAST = block('2000::/3');
/** Blocks for special purposes that the library takes for ordinary ones, and the host of a machine in Azure. */
const SPECIAL = ['192.88.99.0/24', '3fff::/20', '168.63.129.16/32'].map(block);

/**
 * True for an address of the Internet: none that is private, of this machine or its link, shared by a provider, for many receivers, for
 * documents, reserved, or that carries another address (mapped, compatible, 6to4, NAT64, Teredo).
 */
export function isPublicAddress(text: string): boolean {
  if (isIP(text) === 0) return false;
  const address = ipaddr.parse(text);
  if (address.range() !== 'unicast') return false;
  const isIn = (one: Block) => address.kind() === one[0].kind() && address.match(one);
  if (address.kind() === 'ipv6' && !isIn(GLOBAL_UNICAST)) return false;
  return !SPECIAL.some(isIn);
}
