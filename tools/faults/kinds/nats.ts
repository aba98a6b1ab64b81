import { anyOf, type Fault } from './fault.js';

/** A NATS server dies, and comes again with what it had stored. */
export const restartNats: Fault = {
  name: 'nats-kill',
  flag: 'nats-kills',
  help: 'NATS servers that are killed, and started again with their store',
  groups: anyOf('nats'),
  strike: async ([server], { lasting }) => {
    await server!.end('SIGKILL');
    await lasting(0, 3_000);
    await server!.start();
    return 'killed';
  },
};

/** All that NATS has stored is lost. */
export const eraseNats: Fault = {
  name: 'erase',
  flag: 'erasures',
  help: 'kills of all NATS servers, which start again without their stores',
  groups: ({ members }) => {
    const servers = members.filter(({ role }) => role === 'nats');
    return servers.length === 0 ? [] : [servers];
  },
  strike: async (servers, { lasting }) => {
    await Promise.all(servers.map((server) => server.end('SIGKILL')));
    for (const server of servers) server.erase();
    await lasting(0, 3_000);
    await Promise.all(servers.map((server) => server.start()));
    return 'erased';
  },
};

/** Most servers of a cluster are away: nothing is stored, and nothing is read. */
export const loseQuorum: Fault = {
  name: 'quorum',
  flag: 'quorum-losses',
  help: 'times when two of three NATS servers are down; with it there are three',
  groups: ({ members }) => {
    const servers = members.filter(({ role }) => role === 'nats');
    if (servers.length < 3) return [];
    return servers.map((kept) => servers.filter((server) => server !== kept));
  },
  strike: async (servers, { lasting }) => {
    await Promise.all(servers.map((server) => server.end('SIGKILL')));
    await lasting(500, 6_000);
    await Promise.all(servers.map((server) => server.start()));
    return 'without quorum';
  },
};
