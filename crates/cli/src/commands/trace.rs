//! `syncline trace`: makes traces of what happens to a folder, and plays them into folders of any program.

use std::time::Duration;

use lab::trace;
use lab::trace::play::{Plan, Played, play};
use serde_json::json;

use crate::arguments::{TraceCommand, TraceExecArguments, TraceRecordArguments};
use crate::commands::experiments::refusal;
use crate::connect::Driver;
use crate::context::Context;
use crate::error::{Code, CommandError, Result};
use crate::text::{counted, size};
use crate::ui::Symbol;

mod presets;

/// Runs the command.
pub(crate) fn run(context: &Context<'_>, command: &TraceCommand) -> Result<u8> {
    match command {
        TraceCommand::Gen(preset) => presets::generate(context, preset),
        TraceCommand::Record(arguments) => record(context, arguments),
        TraceCommand::Exec(arguments) => execute(context, arguments),
    }
}

fn record(context: &Context<'_>, arguments: &TraceRecordArguments) -> Result<u8> {
    let driver = Driver::start(context)?;
    let folder = &arguments.folder;
    let plan = trace::record::Plan {
        folder: folder.clone(),
        name: folder.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        pause: Duration::from_millis(arguments.every_ms),
        length: arguments.seconds.map(Duration::from_secs),
    };
    context.ui.say(Symbol::Done, format!("recording {} until Ctrl-C", folder.display()));
    // A signal ends the recording, and nothing is lost by it: what was seen is in the file.
    let mut is_over = |_steps| driver.interrupts().received().is_some();
    let steps = trace::record::record(&plan, &arguments.out, &mut is_over).map_err(refusal)?;
    context.ui.json(&json!({
        "schema": "syncline.trace/1", "type": "made", "trace": arguments.out.display().to_string(), "changes": steps,
    }));
    let steps = counted(steps, "step", "steps");
    context.ui.say(Symbol::Done, format!("{}: {steps}", arguments.out.display()));
    Ok(0)
}

fn execute(context: &Context<'_>, arguments: &TraceExecArguments) -> Result<u8> {
    let plan = Plan {
        folders: arguments.folders.clone(),
        speed: (!arguments.unhindered).then_some(arguments.speed),
        patience: Duration::from_secs(arguments.patience),
    };
    let trace = trace::open(&arguments.trace).map_err(refusal)?;
    let mut said = |line: &str| {
        context.ui.json(&json!({"schema": "syncline.trace/1", "type": "progress", "line": line}));
        context.ui.say(Symbol::Done, line);
    };
    let played = play(trace, &plan, &mut said).map_err(refusal)?;
    tell(context, &played);
    if played.settled.is_some() {
        return Ok(0);
    }
    let first = played.differences.first().cloned().unwrap_or_default();
    Err(CommandError::new(Code::NotAsTraced, "the folders are not what the trace makes of them")
        .cause(first)
        .state(
            "nothing was put right: look at the folders, and at the program that keeps them equal",
        ))
}

fn tell(context: &Context<'_>, played: &Played) {
    let Played { initial_steps, steps, written_bytes, differences, .. } = played;
    let seconds = |time: Duration| time.as_secs_f64();
    context.ui.json(&json!({
        "schema": "syncline.trace/1",
        "type": "summary",
        "initial_steps": initial_steps,
        "steps": steps,
        "written_bytes": written_bytes,
        "initial_seconds": seconds(played.initial),
        "playing_seconds": seconds(played.playing),
        "waited_seconds": seconds(played.waited),
        "latest_seconds": seconds(played.latest),
        "settled_seconds": played.settled.map(seconds),
        "differences": differences,
    }));
    let ui = context.ui;
    ui.answer(format!(
        "initial tree   {initial_steps} steps, everywhere after {:.1} s",
        seconds(played.initial)
    ));
    let (playing, waited) = (seconds(played.playing), seconds(played.waited));
    ui.answer(format!(
        "trace          {steps} steps in {playing:.1} s, {} written in all",
        size(*written_bytes)
    ));
    ui.answer(format!("waited         {waited:.1} s for what another client had changed; the latest step was {:.2} s late", seconds(played.latest)));
    if let Some(settled) = played.settled {
        ui.answer(format!(
            "end            all folders are as the trace says, {:.2} s after the last step",
            seconds(settled)
        ));
    }
    for difference in differences {
        ui.answer(format!("end            {difference}"));
    }
}
