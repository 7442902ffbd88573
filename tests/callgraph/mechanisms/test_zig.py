"""Zig: structs, files and functions as types, payload captures, and functions in fields."""


def test_methods_are_those_of_the_declared_or_inferred_type(calls):
    found = calls(
        {
            "app.zig": """
            const Till = struct {
                const Self = @This();
                drawer: ?*Drawer = null,
                pub fn init() !Till { return .{}; }
                pub fn open(self: *Self) void { count(); self.drawer.?.slide(); }
                fn count() void {}
            };
            const Drawer = struct {
                pub fn slide(self: *Drawer) void { _ = self; }
                pub fn open(self: *Drawer) void { _ = self; }
            };
            const Error = error{Closed};
            fn find() Error!?*Till { return null; }
            pub fn main() !void {
                var till = try Till.init();
                till.open();
                const other: Drawer = .init();
                other.slide();
                const third = try find() orelse return;
                third.*.drawer.?.open();
                none.open();
            }
            """
        }
    )

    assert found == {
        ("Till.open", "Till.count", "type of the receiver"),
        ("Till.open", "Drawer.slide", "type of the receiver"),
        ("main", "Till.init", "type of the receiver"),
        ("main", "Till.open", "type of the receiver"),
        ("main", "Drawer.slide", "type of the receiver"),
        ("main", "find", "same file"),
        ("main", "Drawer.open", "type of the receiver"),
    }


def test_files_are_imported_and_may_be_types(calls):
    found = calls(
        {
            "src/main.zig": """
            const lib = @import("lib.zig");
            const Queue = @import("data/Queue.zig");
            const Till = @import("lib.zig").Till;
            pub fn main() void {
                lib.start();
                lib.passed();
                var queue: Queue = .init();
                queue.push();
                Till.open();
                lib.Till.none();
            }
            """,
            "src/lib.zig": """
            pub usingnamespace @import("more.zig");
            pub const Till = struct { pub fn open() void {} };
            pub fn start() void {}
            """,
            "src/more.zig": "pub fn passed() void {}\n",
            "src/data/Queue.zig": """
            const Self = @This();
            inner: Inner,
            const Inner = struct { fn go(self: *Inner) void { _ = self; } };
            pub fn init() Self { return .{ .inner = .{} }; }
            pub fn push(self: *Self) void { self.inner.go(); self.grow(); }
            fn grow(self: *Self) void { _ = self; }
            """,
        }
    )

    assert found == {
        ("src/main.zig::main", "src/lib.zig::start", "imported name"),
        ("src/main.zig::main", "src/more.zig::passed", "imported name"),
        ("src/main.zig::main", "src/data/Queue.zig::init", "imported name"),
        ("src/main.zig::main", "src/data/Queue.zig::push", "imported name"),
        ("src/main.zig::main", "src/lib.zig::Till.open", "type of the receiver"),
        ("src/data/Queue.zig::push", "src/data/Queue.zig::Inner.go", "type of the receiver"),
        ("src/data/Queue.zig::push", "src/data/Queue.zig::grow", "imported name"),
    }


def test_functions_give_types_that_hold_what_they_are_given(calls):
    found = calls(
        {
            "app.zig": """
            const std = @import("std");
            fn List(comptime T: type) type {
                return struct {
                    const Self = @This();
                    items: []T,
                    pub fn init() Self { return .{ .items = &.{} }; }
                    pub fn show(self: *Self) void { self.items[0].run(); self.grow(); }
                    pub fn first(self: *Self) ?T { return self.items[0]; }
                    fn grow(self: *Self) void { _ = self; }
                    const Iterator = struct {
                        list: *Self,
                        fn next(it: *Iterator) ?T { return it.list.first(); }
                    };
                };
            }
            const Job = struct { fn run(self: *Job) void { _ = self; } };
            const Jobs = List(Job);
            fn go(jobs: *Jobs, all: []const std.ArrayList(Job), map: std.AutoHashMap(u32, Job)) void {
                jobs.show();
                if (jobs.first()) |job| job.run();
                for (all) |some| some.items[0].run();
                map.get(1).?.run();
                var it = List(u8).init();
                it.none();
            }
            """
        }
    )

    assert found == {
        ("app.zig", "List", "same file"),
        ("List.show", "Job.run", "type of the receiver"),
        ("List.show", "List.grow", "type of the receiver"),
        ("List.Iterator.next", "List.first", "type of the receiver"),
        ("go", "List", "same file"),
        ("go", "List.show", "type of the receiver"),
        ("go", "List.first", "type of the receiver"),
        ("go", "List.init", "type of the receiver"),
        ("go", "Job.run", "type of the receiver"),
    }


def test_a_switch_and_a_loop_tell_what_their_payloads_are(calls):
    found = calls(
        {
            "app.zig": """
            const Circle = struct { fn area(self: Circle) f32 { _ = self; return 1; } };
            const Square = struct {
                fn area(self: Square) f32 { _ = self; return 1; }
                fn draw(self: Square) void { _ = self; }
            };
            const Shape = union(enum) {
                circle: Circle,
                square: Square,
                fn area(self: Shape) f32 {
                    return switch (self) { .circle => |one| one.area(), else => 0 };
                }
                fn draw(self: Shape) void {
                    switch (self) { inline else => |one| one.draw() }
                }
            };
            fn go(shapes: []const Shape, squares: [4]Square, queue: *Queue) void {
                for (shapes, 0..) |*one, at| one.draw(at);
                for (shapes, squares) |_, one| one.draw();
                while (queue.next()) |one| one.area();
            }
            const Queue = struct { fn next(self: *Queue) ?Circle { _ = self; return null; } };
            """
        }
    )

    assert found == {
        ("Shape.area", "Circle.area", "type of the receiver"),
        ("Shape.draw", "Square.draw", "type of the receiver"),
        ("go", "Shape.draw", "type of the receiver"),
        ("go", "Square.draw", "type of the receiver"),
        ("go", "Queue.next", "type of the receiver"),
        ("go", "Circle.area", "type of the receiver"),
    }


def test_functions_are_given_to_fields_and_parameters(calls):
    found = calls(
        {
            "app.zig": """
            const Handler = *const fn (u8) void;
            const Button = struct {
                on: *const fn (u8) void = ignore,
                off: Handler,
                fn press(self: Button) void { self.on(1); self.off(1); }
            };
            fn ignore(_: u8) void {}
            fn ring(_: u8) void {}
            fn mute(_: u8) void {}
            fn late(_: u8) void {}
            fn never(_: u8) void {}
            const buttons = [_]Button{ .{ .on = ring, .off = mute } };
            fn change(button: *Button) void { button.off = late; }
            fn apply(comptime T: type, f: fn (T) void, x: anytype) void { f(1); x.press(); }
            fn go(button: Button) void { apply([]const u8, ignore, button); _ = never; }
            """
        }
    )

    assert found == {
        ("Button.press", "ignore", "type of the receiver"),
        ("Button.press", "ring", "argument of a caller"),
        ("Button.press", "mute", "argument of a caller"),
        ("Button.press", "late", "argument of a caller"),
        ("apply", "ignore", "argument of a caller"),
        ("apply", "Button.press", "type of the receiver"),
        ("go", "apply", "same file"),
    }


def test_a_chain_that_is_too_long_is_not_followed(calls):
    chain = "\n    .next()" * 2000
    found = calls({"app.zig": f"fn start() void {{}}\nfn go() void {{ start(); none{chain}.start(); }}\n"})

    assert found == {("go", "start", "same file")}
