import { Command, Option } from 'commander';
import { OPTIONS } from '../options/table.js';
import { loadConfig } from '../settings/config.js';
import { flagsOf } from '../settings/flags.js';
import { checkInstructionSet } from '../settings/instruction-set-variable.js';
import { helpBehind } from '../terminal/help.js';
import { configOption } from './serve-command.js';

const HELP = `
The tools are complete (of a model that generates), embed (of an encoder that embeds) and rerank (of an encoder of either
kind). Without --port a client starts the command and talks to it over stdin and stdout, where nothing but the protocol
is written:

  {"mcpServers": {"skein": {"command": "skein", "args": ["mcp", "--model", "MODEL"]}}}

With --port clients on this machine connect to http://127.0.0.1:PORT/mcp.

Exit codes: 0 when the client has gone or after a requested shutdown, 1 for a failure, 2 for a command line that is not
understood.
`;

/** Options of the engine that are flags of this command. */
const OF_ENGINE = OPTIONS.filter(({ flag }) => flag.isForAsking).map(({ name }) => name);
/** Options for clients over HTTP. */
const OF_HTTP = ['host', 'apiKey', 'apiKeyFile', 'corsOrigin', 'allowedHost'] as const;

export function mcpCommand(): Command {
  const command = new Command('mcp').description(
    'offer models as tools to programs that speak the Model Context Protocol',
  );
  for (const flag of flagsOf('model')) command.addOption(flag);
  command.addOption(
    new Option('--port <N>', 'listen for clients over HTTP at this port, not on stdin; 0 picks a free one'),
  );
  for (const name of OF_HTTP) for (const flag of flagsOf(name, 'With --port:')) command.addOption(flag);
  for (const name of OF_ENGINE)
    for (const flag of flagsOf(name, 'Options of the engine:')) command.addOption(flag);
  command.addOption(configOption());
  return helpBehind(command, HELP).action(async (flags: Record<string, unknown>) => {
    checkInstructionSet(process.env.SKEIN_ISA);
    const file = typeof flags.config === 'string' ? flags.config : undefined;
    const config = loadConfig({ flags, environment: process.env, file });
    const { mcp } = await import('./mcp.js');
    await mcp(config, flags.port !== undefined);
  });
}
