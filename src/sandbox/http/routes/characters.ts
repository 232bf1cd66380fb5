import { type Context, Hono } from 'hono';
import {
  charactersOf,
  deleteCharacter,
  findCharacter,
  registerCharacter,
  viewCharacter,
} from '../../service/characters.js';
import { readCharacterOrder } from '../../service/order.js';
import type { World } from '../../world/world.js';
import { acknowledge, succeed, succeedList } from '../answers.js';
import { admit, createJob, createOnce, fieldsIn, replayed } from '../caller.js';

/** POST, GET and DELETE /v1/characters. */
export function characterRoutes(world: World): Hono {
  const { shapes } = world.settings;
  const access = { scope: 'characters:create' } as const;
  return new Hono()
    .post('/v1/characters', (context) => {
      if (modeOf(context) !== 'register') return createJob(world, context, { ...access, read: readCharacterOrder });
      const caller = admit(world, context, access);
      const { id, isReplay } = createOnce(world, context, {
        caller,
        kind: 'character',
        create: (fields) => registerCharacter(world, caller.account.id, fields).id,
      });
      const character = findCharacter(world, caller.account.id, id);
      return succeed({ character: viewCharacter(world, caller, character) }, replayed(isReplay));
    })
    .get('/v1/characters', (context) => {
      const caller = admit(world, context, { scope: 'characters:read' });
      const characters = charactersOf(world.state, caller.account.id);
      const records = characters.map((character) => viewCharacter(world, caller, character));
      return succeedList({ name: 'characters', key: 'character_id', records }, shapes);
    })
    .get('/v1/characters/:id', (context) => {
      const caller = admit(world, context, { scope: 'characters:read' });
      const character = findCharacter(world, caller.account.id, context.req.param('id'));
      const record = viewCharacter(world, caller, character);
      return succeed(shapes.character === 'flat' ? record : { character: record });
    })
    .delete('/v1/characters/:id', (context) => {
      const { account } = admit(world, context, { scope: 'characters:delete' });
      const character = findCharacter(world, account.id, context.req.param('id'));
      deleteCharacter(world, character);
      return acknowledge({ character_id: character.id, deleted: true }, shapes);
    });
}

/** The mode that a body names. What cannot be read is refused by the endpoint, after the key was checked. */
function modeOf(context: Context): unknown {
  try {
    return fieldsIn(context).raw('mode');
  } catch {
    return undefined;
  }
}
