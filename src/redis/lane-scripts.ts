// The shared state of one lane, and the only steps that change it. All time is the Redis server's own.
//
//   queue   sorted set  runs of waiting calls, by arrival; a run is '<number>:<process>'
//   runs    hash        how many calls of a run still wait
//   alive   sorted set  processes that wait, by the time until which they are believed to live
//   flight  sorted set  slots of calls under way, by the time after which their process is believed dead
//   rest    sorted set  slots of answered calls, by the time at which they are free again
//   meta    hash        'run' and 'slot' counters, 'paused' until and 'pausedFor' how long, 'of:<process>' calls that wait

import { type RedisClient, redisScript } from '../redis-client.js';

type Step = (values: readonly (string | number)[]) => Promise<unknown>;

/** The steps that a process can take at a lane. */
export interface LaneScripts {
  readonly turn: Step;
  readonly answered: Step;
  readonly unused: Step;
  readonly underWay: Step;
  readonly pause: Step;
}

const HEAD = `
local queue, runs, alive, flight, rest, meta = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function keep(ms)
  for _, key in ipairs(KEYS) do redis.call('PEXPIRE', key, ms) end
end
-- No time can be further away than its own length. One that is was written before the clock was set back.
local function cut(key, most)
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', key, string.format('(%.0f', most), '+inf')) do
    redis.call('ZADD', key, most, member)
  end
end
`;

/**
 * A process's turn: says how many of its calls wait, and takes the slots that are its own by now.
 * Values: limit, rest in ms, process, lease in ms, calls waiting. Gives: milliseconds until the next turn is worth it,
 * calls ahead, whether the lane is paused, then the slots taken.
 */
const TURN = `${HEAD}
local limit, restMs, me, leaseMs, want = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])

cut(flight, now + leaseMs)
cut(alive, now + leaseMs)
cut(rest, now + restMs)

-- A call whose process died is taken for answered when its lease ran out.
for _, slot in ipairs(redis.call('ZRANGEBYSCORE', flight, '-inf', now)) do
  local lost = tonumber(redis.call('ZSCORE', flight, slot))
  redis.call('ZREM', flight, slot)
  redis.call('ZADD', rest, lost + restMs, slot)
end
redis.call('ZREMRANGEBYSCORE', rest, '-inf', now)
redis.call('ZREMRANGEBYSCORE', alive, '-inf', now)
if want > 0 then redis.call('ZADD', alive, now + leaseMs, me) else redis.call('ZREM', alive, me) end

local function leave(run, count)
  if redis.call('HINCRBY', runs, run, 0 - count) <= 0 then
    redis.call('HDEL', runs, run)
    redis.call('ZREM', queue, run)
  end
end
local function ownerOf(run) return string.sub(run, string.find(run, ':', 1, true) + 1) end

-- The queue learns how many calls of this process wait: new ones go to its end, and those that gave up leave from there.
local had = tonumber(redis.call('HGET', meta, 'of:' .. me) or 0)
if want > had then
  local last = redis.call('ZREVRANGE', queue, 0, 0)[1]
  if not last or ownerOf(last) ~= me then
    local number = redis.call('HINCRBY', meta, 'run', 1)
    last = string.format('%.0f', number) .. ':' .. me
    redis.call('ZADD', queue, number, last)
  end
  redis.call('HINCRBY', runs, last, want - had)
elseif want < had then
  local surplus = had - want
  for _, run in ipairs(redis.call('ZREVRANGE', queue, 0, -1)) do
    if surplus == 0 then break end
    if ownerOf(run) == me then
      local count = math.min(surplus, tonumber(redis.call('HGET', runs, run) or 0))
      leave(run, count)
      surplus = surplus - count
    end
  end
end

local pauseMs = math.max(0, tonumber(redis.call('HGET', meta, 'paused') or 0) - now)
local longest = tonumber(redis.call('HGET', meta, 'pausedFor') or pauseMs)
if pauseMs > longest then
  pauseMs = longest
  redis.call('HSET', meta, 'paused', now + longest)
end
local free = limit - redis.call('ZCARD', flight) - redis.call('ZCARD', rest)
if pauseMs > 0 then free = 0 end

-- From the head of the queue each call has a free slot to itself, and this process takes those of its own calls.
local taken, ahead, at, mine = {}, 0, 0, false
while not mine and want > #taken and ahead < limit do
  local run = redis.call('ZRANGE', queue, at, at)[1]
  if not run then break end
  local owner = ownerOf(run)
  local count = tonumber(redis.call('HGET', runs, run) or 0)
  if owner ~= me and not redis.call('ZSCORE', alive, owner) then
    leave(run, count)
    redis.call('HDEL', meta, 'of:' .. owner)
  elseif owner ~= me then
    ahead = ahead + count
    at = at + 1
  else
    local take = math.max(0, math.min(count, free - ahead))
    for _ = 1, take do
      local slot = string.format('%.0f', redis.call('HINCRBY', meta, 'slot', 1))
      redis.call('ZADD', flight, now + leaseMs, slot)
      taken[#taken + 1] = slot
    end
    ahead = ahead + take
    leave(run, take)
    if take < count then mine = true end
  end
end

local left = want - #taken
if left > 0 then redis.call('HSET', meta, 'of:' .. me, left) else redis.call('HDEL', meta, 'of:' .. me) end

-- The call after those ahead gets the slot after theirs. One still under way rests a whole window from now at least.
local waitMs = restMs
local next = redis.call('ZRANGE', rest, ahead - free, ahead - free, 'WITHSCORES')[2]
if ahead < free then waitMs = 0 elseif next then waitMs = math.max(0, next - now) end
if pauseMs > 0 then waitMs = pauseMs end
keep(2 * (restMs + leaseMs) + pauseMs + 60000)
local reply = { waitMs, ahead - #taken, pauseMs > 0 and 1 or 0 }
for _, slot in ipairs(taken) do reply[#reply + 1] = slot end
return reply`;

/** Calls were answered: their slots rest from now on. Values: rest in ms, slots. */
const ANSWERED = `${HEAD}
for at = 2, #ARGV do
  redis.call('ZREM', flight, ARGV[at])
  redis.call('ZADD', rest, now + ARGV[1], ARGV[at])
end
keep(2 * ARGV[1] + 60000)
return 0`;

/** Calls never went out: their slots are free. Values: slots. */
const UNUSED = `${HEAD}
for at = 1, #ARGV do redis.call('ZREM', flight, ARGV[at]) end
return 0`;

/** Calls are still under way. Values: lease in ms, slots. */
const UNDER_WAY = `${HEAD}
for at = 2, #ARGV do
  if redis.call('ZSCORE', flight, ARGV[at]) then redis.call('ZADD', flight, now + ARGV[1], ARGV[at]) end
end
return 0`;

/** Nothing goes out for a while. Values: the while in ms. */
const PAUSE = `${HEAD}
local paused = tonumber(redis.call('HGET', meta, 'paused') or 0)
if now + ARGV[1] > paused then redis.call('HSET', meta, 'paused', now + ARGV[1], 'pausedFor', ARGV[1]) end
redis.call('PEXPIRE', meta, ARGV[1] + math.max(60000, redis.call('PTTL', meta)))
return 0`;

/** The scripts of a limiter; gives those of each lane. `prefix` stands before the name of the lane in every key. */
export function laneScripts(client: RedisClient, prefix: string): (lane: string) => LaneScripts {
  const turn = redisScript(client, TURN);
  const answered = redisScript(client, ANSWERED);
  const unused = redisScript(client, UNUSED);
  const underWay = redisScript(client, UNDER_WAY);
  const pause = redisScript(client, PAUSE);
  return (lane) => {
    // One hash tag: a cluster keeps the keys of a lane together.
    const keys = ['queue', 'runs', 'alive', 'flight', 'rest', 'meta'].map((part) => `${prefix}{${lane}}:${part}`);
    return {
      turn: (values) => turn(keys, values),
      answered: (values) => answered(keys, values),
      unused: (values) => unused(keys, values),
      underWay: (values) => underWay(keys, values),
      pause: (values) => pause(keys, values),
    };
  };
}
